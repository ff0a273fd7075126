"""What a process writes about jobs and answers is for its owner alone."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from colonnade.party.listening import listen
from colonnade.party.prediction import store
from colonnade.party.prediction.store import PredictionFolder
from colonnade.party.vault.meter import Meter, read_log
from colonnade.server.store.base import JobRow
from colonnade.server.store.sql import Database
from colonnade.v1 import federation_pb2 as pb


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def job_in(database: Database) -> None:
    with database.transaction():
        database.add_job(JobRow("ab", b"spec", "me", 1.0))


def test_a_coordinators_database_and_its_log_are_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "coordinator.db"
    database = Database(f"sqlite:///{path}")
    job_in(database)
    made = list(path.parent.iterdir())
    assert {each.name for each in made} >= {"coordinator.db", "coordinator.db-wal"}
    assert {mode(each) for each in made} == {0o600}
    assert mode(path.parent) == 0o700
    database.close()


def test_one_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "coordinator.db"
    Database(f"sqlite:///{path}").close()
    path.chmod(0o644)
    database = Database(f"sqlite:///{path}")
    job_in(database)
    assert {mode(each) for each in tmp_path.iterdir()} == {0o600}
    database.close()


def test_a_partys_log_of_what_left_is_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "uplink.jsonl"
    Meter(path).note(pb.AttachRequest(hello=pb.Hello()))
    assert mode(path) == 0o600
    path.chmod(0o664)
    path.write_text(path.read_text().rstrip())  # as a crash may cut it off
    meter = Meter(path)
    assert mode(path) == 0o600
    meter.note(pb.AttachRequest(hello=pb.Hello()))
    assert len(read_log(path)) == 2


def test_a_vaults_socket_is_made_for_its_owner_and_never_by_a_name_that_net_may_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, path = tmp_path / "ledger.db", tmp_path / "run" / "vault.sock"
    ledger.touch(0o600)
    modes = []

    class Replaced(socket.socket):
        def bind(self, address: str) -> None:  # type: ignore[override]
            super().bind(address)
            modes.append(mode(path))
            path.unlink()  # net may write in this folder
            path.symlink_to(ledger)

    monkeypatch.setattr(socket, "socket", Replaced)
    listen(path, 0o660).close()
    assert modes == [0o660]
    assert mode(ledger) == 0o600


def test_a_receivers_scores_are_for_the_owner_alone_while_they_are_written_and_durable_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, synced = list[tuple[set[int], list[str]]](), set[int]()
    write, sync = store._write_csv, os.fsync

    def watched(table: object, path: Path) -> None:
        found = {path.stat().st_ino}
        write(table, path)  # type: ignore[arg-type]
        there = [each.name for each in path.parent.iterdir()]
        written.append((found | {path.stat().st_ino}, there))

    def noted(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(store, "_write_csv", watched)
    monkeypatch.setattr(os, "fsync", noted)
    rows, scores = np.arange(3), np.ones(3)
    kept = PredictionFolder(tmp_path).keep_scores("ab", rows, scores, scores, names=((), {}))
    assert written == [({kept.stat().st_ino}, [".ab.csv.tmp"])]  # one file from the beginning
    assert kept.stat().st_ino in synced
    assert mode(kept) == 0o600
    assert len(kept.read_text().splitlines()) == 4


def test_a_log_that_is_no_file_keeps_its_rights() -> None:
    before = mode(Path(os.devnull))
    Meter(Path(os.devnull)).note(pb.AttachRequest(hello=pb.Hello()))
    assert mode(Path(os.devnull)) == before
