"""A folder that a release wrote opens, or is refused with what to do before it is charged."""

import json
import tarfile
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
import sqlalchemy as sa
from support.desk import Desk, job_of

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput, BadMessage, ColonnadeError, LedgerDamaged
from colonnade.data.model import LinearModel
from colonnade.data.table import COARSE_NAME, Table
from colonnade.ledger.create import open_ledger
from colonnade.ledger.export import verify_export
from colonnade.ledger.gate import Gate
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.data.dataset import open_dataset
from colonnade.privacy.sampling import OsNoise
from colonnade.server.engine import coordinator, intake
from colonnade.server.store.base import State
from colonnade.server.store.sql import Database
from colonnade.v1 import job_pb2
from colonnade.wire.jobspec import VERSION, job_from_bytes, job_to_bytes
from colonnade.wire.session import PROTOCOL
from upgrade.make import KEY, MECHANISM, REQUEST, WRITTEN

RELEASES = sorted(WRITTEN.glob("*.tar.xz"))


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def never() -> IntArray:
    raise AssertionError("a stored release is drawn again")


def test_there_is_a_folder_of_every_release() -> None:
    assert len(RELEASES) >= 1
    assert all(path.stat().st_size < 100_000 for path in RELEASES)


def test_a_ledger_goes_on_where_it_was(folder: Path) -> None:
    facts = json.loads((folder / "facts.json").read_text())
    ledger = open_ledger(LedgerFiles(folder / "ledger"))
    try:
        assert (ledger.head.spent, ledger.head.seq) == (facts["spent"], facts["seq"])
        gate = Gate(ledger, OsNoise())
        assert gate.release(KEY, REQUEST, MECHANISM, never).body == bytes.fromhex(facts["body"])
        assert ledger.head.spent == facts["spent"]
        more = KEY._replace(round=1)
        gate.release(more, REQUEST, MECHANISM, lambda: np.arange(4, dtype=np.int64))
        assert ledger.head.spent == facts["spent"] + MECHANISM.cost
        with pytest.raises(ColonnadeError):
            gate.release(KEY._replace(job="a closed job"), REQUEST, MECHANISM, never)
    finally:
        ledger.close()


def test_tables_models_specifications_and_exports_are_read(folder: Path) -> None:
    with open_dataset(folder / "data") as dataset:
        assert dataset.coarse.n_rows == 48
    assert LinearModel.from_json((folder / "model.json").read_text()).loss == "squared"
    spec = (folder / "job.spec").read_bytes()
    assert job_to_bytes(job_from_bytes(spec)) == spec
    lines = (folder / "export.jsonl").read_text().splitlines()
    (account,) = verify_export(lines).accounts
    assert (account.spent, account.releases) == (MECHANISM.cost, 1)


def test_a_ledger_of_a_later_format_is_left_alone(folder: Path) -> None:
    files = LedgerFiles(folder / "ledger")
    database = apsw.Connection(str(files.database))
    database.execute("PRAGMA user_version = 99")
    database.close()
    kept = (files.database, files.mirror, files.key)
    before = [path.read_bytes() for path in kept]
    with pytest.raises(LedgerDamaged, match="wrote"):
        open_ledger(files)
    assert [path.read_bytes() for path in kept] == before
    assert not files.stopped.exists()


def test_a_table_of_another_format_says_to_ingest_again(folder: Path) -> None:
    path = folder / "data" / COARSE_NAME
    content = bytearray(path.read_bytes())
    place = content.index(b"\n") if content[:1] == b"#" else 8
    for at in range(place, place + 8):  # the version follows the magic bytes
        changed = bytearray(content)
        changed[at] ^= 0x40
        path.chmod(0o600)
        path.write_bytes(changed)
        with pytest.raises(BadInput, match="ingest"):
            Table.open(path)


@pytest.mark.parametrize("change", [-1, 1])
def test_a_specification_of_another_version_is_refused_unread(folder: Path, change: int) -> None:
    message = job_pb2.JobSpec.FromString((folder / "job.spec").read_bytes())
    message.version = VERSION + change
    with pytest.raises(BadMessage, match=f"version {VERSION + change}"):
        job_from_bytes(message.SerializeToString())
    message.version = VERSION
    later = message.SerializeToString() + b"\xf8\x06\x01"  # a field that is not known here
    with pytest.raises(BadMessage):
        job_from_bytes(later)


def test_a_coordinators_database_of_another_version_is_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'coordinator.db'}"
    Database(url).close()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE about SET schema_version = 99"))
    engine.dispose()
    before = (tmp_path / "coordinator.db").read_bytes()
    with pytest.raises(BadInput, match="made it"):
        Database(url)
    assert (tmp_path / "coordinator.db").read_bytes() == before


@pytest.mark.parametrize("here", [PROTOCOL, PROTOCOL + 1])
@pytest.mark.parametrize("there", [PROTOCOL, PROTOCOL + 1])
def test_two_versions_of_both_roles_work_together_or_refuse_before_a_charge(
    here: int, there: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "PROTOCOL", here)
    monkeypatch.setattr(coordinator, "PROTOCOL", here)
    desk = Desk("hospital", "lab")
    hello: dict[str, Any] = {"protocol": there}
    if here == there:
        for name in desk.sides:
            desk.deliver(desk.attach(name, **hello))
        desk.deliver(desk.submit(job_of("hospital", "lab")))
        assert [row.state for row in desk.store.jobs()] == [State.FINISHED]
        assert all(side.ledger.state.total > 0 for side in desk.sides.values())
    else:
        side = desk.sides["lab"]
        desk.refused(BadInput, "update the older", desk.engine.attach, "lab", side.hello(**hello))
        assert desk.engine.attached == frozenset()
        assert side.ledger.state.total == 0
    desk.store.close()
