"""The crash harness finds nothing in the ledger, and finds every bug planted in it."""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.ledgers import unsync_commits

from colonnade.bench.crash.corruption import run_corruptions
from colonnade.bench.crash.counters import Counters
from colonnade.bench.crash.faults import (
    injected,
    run_operation_faults,
    run_syscall_errors,
    run_syscall_kills,
)
from colonnade.bench.crash.images import record_run, run_double_images, run_images
from colonnade.bench.crash.kills import run_kills
from colonnade.bench.crash.party import MECHANISM, STEPS, VALUE, At, Send
from colonnade.bench.crash.sealed import cost_of, sealed_answer
from colonnade.bench.crash.vfs import Sync, Write
from colonnade.bench.scratch import memory_folder, scratch
from colonnade.ledger import drafts as drafts_module
from colonnade.ledger import ledger as ledger_module
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Step, int64_bytes
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.rules import releases as releases_module
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import Head, LedgerState
from colonnade.ledger.storage import sqlite as storage_module
from colonnade.ledger.storage.base import Storage
from colonnade.ledger.storage.mirror import HeadMirror
from colonnade.ledger.writing import journal as journal_module
from colonnade.privacy.sampling import OsNoise

NOTHING = Counters()
DOUBLES = 150


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return a folder in memory: what is killed leaves its writes to the system on any disk.

    Power cuts are rebuilt from records, and faults are injected. A disk would only be waited for.
    """
    with scratch(memory_folder()) as folder:
        yield folder


def test_hundreds_of_kills_break_nothing(tmp_path: Path) -> None:
    # Forty a step; 100 kills in all catch each of the planted bugs below.
    counters, hits = run_kills(tmp_path, 400)
    print(counters, hits)
    assert counters == NOTHING
    assert sum(hits.values()) == 400
    assert len(hits) == len(STEPS)  # every step was hit,
    assert min(hits.values()) >= 5  # and not just once: 400 / 10 steps, more than 5 deviations less


def test_killing_amid_releases_that_go_together_breaks_nothing(tmp_path: Path) -> None:
    counters, hits = run_kills(tmp_path, 200, together=4)
    print(counters, hits)
    assert counters == NOTHING
    assert sum(hits.values()) == 200
    assert len(hits) == len(STEPS)
    assert min(hits.values()) >= 3  # 200 / 10 steps, 4 deviations less


def test_killing_a_party_that_seals_replies_and_opens_breaks_nothing(tmp_path: Path) -> None:
    steps = (*STEPS, "key written")
    how = sealed_answer(tmp_path / "keys")
    counters, hits = run_kills(tmp_path, 110, how=how, steps=steps, cost=cost_of)
    print(counters, hits)
    assert counters == NOTHING
    assert len(hits) == len(steps)
    assert min(hits.values()) >= 1  # 110 / 11 steps, 3 deviations less


def test_the_harness_finds_a_party_that_seals_again_what_it_has_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "has", lambda *_: False)  # and so nothing is replayed
    how = sealed_answer(tmp_path / "keys")
    counters, _ = run_kills(tmp_path, 30, how=how, cost=cost_of)
    assert counters.total > 0


@pytest.mark.parametrize("together", [1, 4])
def test_failing_every_single_write_and_sync_breaks_nothing(tmp_path: Path, together: int) -> None:
    counters, points = run_operation_faults(tmp_path, together=together)
    print(counters, points)
    assert counters == NOTHING
    assert points["sync failed"] >= 12 // together  # three for each of four releases, or for all
    # Every fault was met, but for those after the last one that stops the party.
    assert points["killed"] == points["sync failed"] + points["disk full"]


def test_killing_at_every_writing_system_call_breaks_nothing(tmp_path: Path) -> None:
    result = run_syscall_kills(tmp_path)
    if result is None:
        pytest.skip("strace is not installed or may not attach")
    counters, points = result
    print(counters, points)
    assert counters == NOTHING
    assert points >= 40


def test_a_call_that_the_log_has_in_two_lines_is_read_as_one() -> None:
    log = (
        "7 pwrite64(5</l/ledger.lock>, 1, 1, 0 <unfinished ...>\n"
        "8 fdatasync(3</l/ledger.db-wal>) = -1 EIO (Input/output error) (INJECTED)\n"
        "7 <... pwrite64 resumed>) = -1 ENOSPC (No space left on device) (INJECTED)\n"
        "8 fdatasync(3</l/ledger.db-wal>) = 0\n"
    )
    first, second = injected(log)
    assert "ledger.db-wal>" in first
    assert "ledger.lock>" in second


def test_errors_of_the_kernel_stop_the_party(tmp_path: Path) -> None:
    result = run_syscall_errors(tmp_path)
    if result is None:
        pytest.skip("strace is not installed or may not attach")
    counters, points = result
    print(counters, points)
    assert counters == NOTHING
    assert points["fdatasync"] >= 12
    assert points["fsync"] >= 2
    assert points["pwrite64"] >= 40


@pytest.mark.parametrize("together", [1, 3])
def test_power_cuts_after_a_kill_and_a_replay_lose_nothing(tmp_path: Path, together: int) -> None:
    # As many as catch the planted start that does not sync.
    counters = run_double_images(tmp_path, DOUBLES, together=together)
    print(counters)
    assert counters == NOTHING


@pytest.mark.parametrize("together", [1, 5])
def test_log_and_mirror_are_on_disk_before_every_release(tmp_path: Path, together: int) -> None:
    # No single fault shows a mirror that is never synced, so the order itself is checked.
    _, record = record_run(tmp_path, 5, together=together)
    dirty: set[str] = set()
    releases = 0
    for item in record:
        if isinstance(item, Write):
            dirty.add(item.file)
        elif isinstance(item, Sync):
            dirty.discard(item.file)
        elif item.body is not None:
            releases += 1
            assert not dirty & {"ledger.db-wal", "head.mirror"}
    assert releases == 5


@pytest.mark.parametrize(("images", "together"), [(400, 1), (200, 7)])
def test_power_cuts_lose_nothing(tmp_path: Path, images: int, together: int) -> None:
    # Four times and twice as many as catch each of the planted bugs below.
    counters = run_images(tmp_path, images, together=together)
    print(counters)
    assert counters == NOTHING


def test_hundreds_of_corruptions_never_open_with_more_budget(tmp_path: Path) -> None:
    # Three times as many as catch each of the planted bugs below, and the same ones first.
    counters, refused = run_corruptions(tmp_path, 900)
    print(counters, refused)
    assert counters == NOTHING
    # Some damage falls on unused bytes and is rightly ignored; much of it must be noticed.
    assert 270 < refused < 900


# -- planted bugs --------------------------------------------------------------------------------


def _sha(request: bytes) -> str:
    return hashlib.sha256(request).hexdigest()


def _draw() -> bytes:
    return int64_bytes(MECHANISM.perturb(VALUE, OsNoise()))


def send_before_store(ledger: Ledger, key: ReleaseKey, request: bytes, at: At, send: Send) -> None:
    ledger.charge(key, MECHANISM, request_sha256=_sha(request))
    at(Step.CHARGED)
    if (earlier := ledger.stored(key)) is not None:
        send(earlier.body)
        return
    body = _draw()
    send(body)
    ledger.store(key, body)
    at(Step.STORED)


def charge_after_send(ledger: Ledger, key: ReleaseKey, request: bytes, at: At, send: Send) -> None:
    if (earlier := ledger.stored(key)) is not None:
        send(earlier.body)
        return
    body = _draw()
    send(body)
    ledger.charge(key, MECHANISM, request_sha256=_sha(request))
    at(Step.CHARGED)
    ledger.store(key, body)
    at(Step.STORED)


def redraw_at_retry(ledger: Ledger, key: ReleaseKey, request: bytes, at: At, send: Send) -> None:
    ledger.charge(key, MECHANISM, request_sha256=_sha(request))
    at(Step.CHARGED)
    if ledger.stored(key) is None:
        ledger.store(key, _draw())
    at(Step.STORED)
    send(_draw())


def ignore_the_request(ledger: Ledger, key: ReleaseKey, request: bytes, at: At, send: Send) -> None:
    ledger.charge(key, MECHANISM, request_sha256=_sha(b"any"))
    at(Step.CHARGED)
    earlier = ledger.stored(key) or ledger.store(key, _draw())
    at(Step.STORED)
    send(earlier.body)


@pytest.mark.parametrize(
    ("mutant", "caught_by"),
    [
        (send_before_store, {"under_counted", "re_drawn"}),
        (charge_after_send, {"under_counted", "re_drawn", "mutated_ok"}),
        (redraw_at_retry, {"re_drawn"}),
        (ignore_the_request, {"mutated_ok"}),
    ],
)
def test_kills_catch_a_wrong_order(tmp_path: Path, mutant: object, caught_by: set[str]) -> None:
    counters, _ = run_kills(tmp_path, 100, how=mutant)  # type: ignore[arg-type]
    assert all(getattr(counters, name) > 0 for name in caught_by), counters


def test_kills_catch_a_second_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without the rule and the constraint a retry after a crash pays again.
    for module in (ledger_module, releases_module):
        monkeypatch.setattr(module, "check_charge", lambda *_, **__: True)
    monkeypatch.setattr(drafts_module, "_idempotency_key", lambda *_: None)
    counters, _ = run_kills(tmp_path, 60)
    assert counters.double_spent > 0


def test_power_cuts_catch_normal_synchronisation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsync_commits(monkeypatch)
    assert run_images(tmp_path, 100).total > 0


def test_power_cuts_catch_a_lost_release_when_the_mirror_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With NORMAL and a blind start, what was sent is gone and would be drawn again.
    unsync_commits(monkeypatch)
    monkeypatch.setattr(journal_module, "load_state", _load_blindly)
    counters = run_images(tmp_path, 100)
    assert counters.re_drawn > 0
    assert counters.under_counted > 0
    assert counters.opened_with_more_budget > 0


def _load_blindly(storage: Storage) -> LedgerState:
    state = LedgerState()
    for _, line, _ in storage.rows():
        apply_line(state, line)
    return state


def test_corruptions_catch_a_start_without_chain_and_mirror(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "load_state", _load_blindly)
    counters, _ = run_corruptions(tmp_path, 300)
    assert counters.opened_with_more_budget > 0
    assert counters.re_drawn > 0


def test_double_faults_catch_a_start_that_does_not_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A successor that trusts the page cache hands out what a power cut then takes back.
    real = storage_module.SqliteStorage.__init__

    def lazy(self: object, files: object, **options: object) -> None:
        real(self, files, **{**options, "sync": lambda _: None})  # type: ignore[arg-type]

    monkeypatch.setattr(storage_module.SqliteStorage, "__init__", lazy)
    monkeypatch.setattr(storage_module.SqliteStorage, "settle", lambda *_: None)
    assert run_double_images(tmp_path, DOUBLES).total > 0


def test_failed_operations_catch_a_mirror_whose_errors_are_swallowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = HeadMirror.write

    def shrug(self: HeadMirror, head: Head, *, force: bool) -> None:
        with contextlib.suppress(OSError):
            real(self, head, force=force)

    monkeypatch.setattr(HeadMirror, "write", shrug)
    counters, _ = run_operation_faults(tmp_path, ways=["sync failed"])
    assert counters.under_counted > 0


def test_failed_operations_catch_a_ledger_that_does_not_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module.Journal, "check_alive", lambda _: None)
    counters, _ = run_operation_faults(tmp_path, ways=["sync failed"])
    assert counters.under_counted > 0


def test_corruptions_catch_a_mirror_compared_by_length_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LedgerState, "on_chain", lambda self, seq, _: seq < len(self.hashes))
    counters, _ = run_corruptions(tmp_path, 300)
    assert counters.re_drawn > 0
