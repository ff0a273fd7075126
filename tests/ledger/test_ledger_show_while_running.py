"""``ledger show`` of a running party says what it says of a stopped one, and disturbs nothing."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.federation import N_ROWS, make_job, sites
from support.ledgers import CAP, MECHANISM, digest, key

from colonnade.cli.main import main
from colonnade.core.errors import LedgerBusy, LedgerRolledBack
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.entries import canonical
from colonnade.ledger.export import export_lines
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.lines import GENESIS, chain
from colonnade.ledger.storage import snapshot
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.accounting import units_down
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.simulate.federation import create_federation
from colonnade.simulate.processes import Processes

Output = pytest.CaptureFixture[str]
CHEAP = DiscreteGaussian(sigma2=10**8, l2_sensitivity2=4)
# Opens the ledger in its folder and releases without a pause until it is stopped.
WRITER = """
import sys
from pathlib import Path
from support.ledgers import digest, key
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.ledger.create import open_ledger
from colonnade.privacy.mechanisms import DiscreteGaussian
ledger = open_ledger(LedgerFiles(Path(sys.argv[1])))
mechanism = DiscreteGaussian(sigma2=10**8, l2_sensitivity2=4)
for round_ in range(10**6):
    ledger.charge(key(round_), mechanism, request_sha256=digest(b"r"))
    ledger.store(key(round_), bytes(900))
    if round_ == 50:
        print("busy", flush=True)
"""


@pytest.fixture
def files(tmp_path: Path) -> LedgerFiles:
    made = LedgerFiles(tmp_path / "ledger")
    create_ledger(made, LedgerConfig("hospital", {"": CAP}))
    return made


@pytest.fixture
def held(files: LedgerFiles) -> Iterator[Ledger]:
    """A ledger in use, whose last entries are in the log only."""
    ledger = open_ledger(files)
    ledger.admit("job", units=4 * MECHANISM.cost)
    for round_ in range(3):
        release(ledger, round_)
    yield ledger
    ledger.close()


def release(
    ledger: Ledger, round_: int, mechanism: DiscreteGaussian = MECHANISM, job: str = "job"
) -> None:
    ledger.charge(key(round_, job=job), mechanism, request_sha256=digest(b"r"))
    ledger.store(key(round_, job=job), b"body %d" % round_)


def show(capsys: Output, folder: Path) -> dict[str, Any]:
    assert main(["ledger", "show", str(folder), "--entries", "--json"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    return shown


def check(shown: dict[str, Any]) -> None:
    """Recompute what was shown from the entries that were listed."""
    entries = shown["entries_listed"]
    assert [entry["seq"] for entry in entries] == list(range(1, shown["entries"] + 1))
    head = GENESIS
    for entry in entries:
        head = chain(head, canonical(entry))
    assert shown["chain_hash"] == head.hex()
    (account,) = shown["accounts"]
    amounts = {name: account[name]["units"] for name in ("cap", "spent", "set_aside", "left")}
    charged = sum(entry["units"] for entry in entries if entry["type"] == "charged")
    assert amounts["spent"] == charged
    assert sum(amounts[name] for name in ("spent", "set_aside", "left")) == amounts["cap"]


def on_disk(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.iterdir()
    }


def test_a_ledger_in_use_is_shown_whole_and_left_untouched(
    files: LedgerFiles, held: Ledger, capsys: Output
) -> None:
    before = on_disk(files.folder)
    running = show(capsys, files.folder)
    assert main(["ledger", "show", str(files.folder), "--entries"]) == 0
    text = capsys.readouterr().out
    assert on_disk(files.folder) == before
    check(running)
    assert "(rho 0.88)" not in text  # one more release is set aside
    found = re.findall(r"^  (cap|spent|left) +epsilon \S+ \(rho (\S+)\)", text, re.MULTILINE)
    assert found == [("cap", "1"), ("spent", "0.12"), ("left", "0.84")]
    assert text.count(" stored ") == 3
    assert f"entry {held.head.seq}," in text
    held.close_job("job")
    stopped = show(capsys, files.folder)
    assert stopped["accounts"][0]["set_aside"]["units"] == 0
    assert stopped["entries_listed"][: running["entries"]] == running["entries_listed"]


def test_a_ledger_in_use_is_exported_and_left_untouched(
    files: LedgerFiles, held: Ledger, tmp_path: Path, capsys: Output
) -> None:
    before, out = on_disk(files.folder), tmp_path / "export.jsonl"
    assert main(["ledger", "export", str(files.folder), "--out", str(out)]) == 0
    assert on_disk(files.folder) == before
    assert out.read_text("ascii").splitlines() == list(export_lines(held))
    assert main(["ledger", "verify", str(out)]) == 0
    assert f"{held.head.seq} entries" in capsys.readouterr().out


def test_an_export_is_signed_by_the_ledgers_own_key_or_not_made(
    files: LedgerFiles, tmp_path: Path, capsys: Output
) -> None:
    create_ledger(other := LedgerFiles(tmp_path / "other"), LedgerConfig("hospital", {"": CAP}))
    files.key.write_bytes(other.key.read_bytes())
    out = tmp_path / "export.jsonl"
    assert main(["ledger", "export", str(files.folder), "--out", str(out)]) == 5
    assert "not this ledger's" in capsys.readouterr().err
    assert not out.exists()


def test_it_says_the_same_when_the_party_has_stopped(files: LedgerFiles, capsys: Output) -> None:
    ledger = open_ledger(files)
    release(ledger, 0)
    running = show(capsys, files.folder)
    ledger.close()
    assert show(capsys, files.folder) == running


@pytest.mark.slow
def test_a_busy_ledger_is_shown_consistently_and_goes_on(
    files: LedgerFiles, tmp_path: Path, capsys: Output
) -> None:
    paths = json.dumps(sys.path)
    code = f"import sys; sys.path[:] = {paths}\n{WRITER}"
    command = [sys.executable, "-c", code, str(files.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"busy\n"
            ends = list[int]()
            while len(ends) < 8 or ends[-1] < 1000:  # many times round the log
                shown = show(capsys, files.folder)
                check(shown)
                ends.append(shown["entries"])
            assert writer.poll() is None  # it never failed
        finally:
            writer.kill()
    assert ends == sorted(ends)
    assert main(["ledger", "verify", str(files.folder)]) == 0


def test_a_log_started_over_while_it_is_copied_is_copied_again(
    files: LedgerFiles, held: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, moved = snapshot._read, list[int]()

    def read_late(path: Path, size: int = -1) -> bytes:
        if size == -1 and len(moved) < 2:  # the database is copied, the log is not
            for round_ in range(90):
                release(held, round_, CHEAP, job=f"job {len(moved)}")
            moved.append(held.head.seq)
        return read(path, size)

    monkeypatch.setattr(snapshot, "_read", read_late)
    found = snapshot.read_snapshot(files)
    assert len(moved) == 2
    assert found.state.head == held.head
    assert found.newer == 0


def test_a_ledger_that_never_rests_is_said_to_be_busy(
    files: LedgerFiles, held: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = iter(range(10**6))
    monkeypatch.setattr(snapshot, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(snapshot, "_read", lambda *_: next(headers).to_bytes(32, "big"))
    with pytest.raises(LedgerBusy):
        snapshot.read_snapshot(files)


def test_what_the_mirror_has_not_confirmed_is_named_and_not_counted(
    files: LedgerFiles, held: Ledger, tmp_path: Path, capsys: Output
) -> None:
    earlier, end = tmp_path / "mirror", held.head.seq
    shutil.copy(files.mirror, earlier)
    release(held, 3)
    assert main(["ledger", "show", str(files.folder), "--mirror", str(earlier), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["entries"], shown["unconfirmed_entries"]) == (end, 2)
    assert shown["accounts"][0]["spent"]["units"] == 3 * MECHANISM.cost


def test_what_the_mirror_knows_and_the_files_do_not_is_no_ledger(
    files: LedgerFiles, tmp_path: Path, capsys: Output
) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(files.folder, backup)
    ledger = open_ledger(files)
    release(ledger, 0)
    ledger.close()
    for name in ("ledger.db", "ledger.db-wal"):
        shutil.copy(backup / name, files.folder / name)
    assert main(["ledger", "show", str(files.folder)]) == 5
    files.mirror.unlink()
    assert main(["ledger", "show", str(files.folder)]) == 5
    assert "head.mirror is missing" in capsys.readouterr().err


def test_a_damaged_log_is_no_ledger(files: LedgerFiles, held: Ledger) -> None:
    content = bytearray(files.log.read_bytes())
    content[32:] = bytes(len(content) - 32)
    copy = LedgerFiles(files.folder.parent / "copy")
    shutil.copytree(files.folder, copy.folder)
    copy.log.write_bytes(content)
    with pytest.raises(LedgerRolledBack):
        snapshot.read_snapshot(copy)


@pytest.mark.slow
@pytest.mark.usefixtures("fork_server")
def test_a_real_party_in_a_job_is_shown_and_finishes_it(tmp_path: Path, capsys: Output) -> None:
    cap = units_down(50.0)
    made = create_federation(tmp_path, sites(names=("hospital", "insurer")), cap_units=cap)
    folder = made.ledger("hospital").folder
    job = make_job(made, made.parties, rounds=150, select_units=units_down(0.01))
    assert job.population == N_ROWS
    ends = set[int]()
    with Processes(made, tmp_path / "logs") as processes, processes.client() as client:
        processes.wait_for_parties(client)
        name = client.submit(job)
        for view in client.watch(name):
            if view.state == "running":
                shown = show(capsys, folder)
                check(shown)
                assert shown["accounts"][0]["cap"]["units"] == cap
                ends.add(shown["entries"])
        assert (view.state, view.rounds_done) == ("finished", 150)
        running = show(capsys, folder)
    assert len(ends) >= 2
    assert max(ends) <= running["entries"]
    stopped = show(capsys, folder)
    assert stopped["accounts"] == running["accounts"]
