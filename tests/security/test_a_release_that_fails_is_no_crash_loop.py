"""What fails after it was paid for is marked, refused for ever, and leaves the party alive."""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.federation import NAMES, Running, coordinator, everyone, founded, make_job, party
from support.ledgers import CAP, MECHANISM, VALUE, digest, key, new_ledger
from support.vaults import ledger_of, vault_of

from colonnade.bench.crash import party as crash
from colonnade.bench.crash.counters import read_durable
from colonnade.bench.crash.party import Send
from colonnade.bench.crash.process import run_party
from colonnade.core.arrays import IntArray
from colonnade.core.errors import LedgerFailed, ReleaseAbandoned
from colonnade.ledger.create import open_ledger
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import Abandoned, ReleaseKey
from colonnade.ledger.export import export_lines, verify_export
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger, Released
from colonnade.ledger.lines import line_of
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.storage.base import MAX_BODY_BYTES
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.vault.column_jobs import ColumnJobs
from colonnade.party.vault.vault import Vault
from colonnade.privacy.sampling import OsNoise
from colonnade.privacy.simulation import SeededNoise
from colonnade.wire.jobspec import job_to_bytes

COST = MECHANISM.cost


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return new_ledger(request.param, tmp_path, simulation=True)


def fine() -> IntArray:
    return VALUE.copy()


def never() -> IntArray:
    pytest.fail("the data must not be read again")


def fails() -> IntArray:
    raise ZeroDivisionError("the value was 42")


class BrokenNoise(SeededNoise):
    """Cannot draw."""

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        raise ValueError("the noise scale")


def refuses(_: IntArray) -> bytes:
    raise OverflowError("42 does not fit")


FAULTS: dict[str, Callable[[Ledger], Released]] = {
    "compute": lambda ledger: gate(ledger).release(key(), b"r", MECHANISM, fails),
    "memory": lambda ledger: gate(ledger).release(key(), b"r", MECHANISM, lambda: big()),
    "noise": lambda ledger: Gate(ledger, BrokenNoise(0)).release(key(), b"r", MECHANISM, fine),
    "floats": lambda ledger: gate(ledger).release(
        key(),
        b"r",
        MECHANISM,
        lambda: np.zeros(3),  # type: ignore[arg-type, return-value]
    ),
    "encode": lambda ledger: gate(ledger).release(key(), b"r", MECHANISM, fine, encode=refuses),
    "size": lambda ledger: gate(ledger).release(
        key(), b"r", MECHANISM, fine, encode=lambda _: bytes(MAX_BODY_BYTES + 1)
    ),
}


def big() -> IntArray:
    raise MemoryError


def gate(ledger: Ledger) -> Gate:
    return Gate(ledger, OsNoise())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_after_the_charge_is_refused_for_ever_and_ends_nothing(
    ledger: Ledger, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ReleaseAbandoned) as refused:
        FAULTS[fault](ledger)
    assert "42" not in str(refused.value)  # the reason stays in the local log
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert ledger.budget().spent == COST  # paid for
    head = ledger.head
    with pytest.raises(ReleaseAbandoned):
        gate(ledger).release(key(), b"r", MECHANISM, never)
    assert (ledger.head, ledger.budget().spent) == (head, COST)  # and never again
    assert gate(ledger).release(key(1), b"r", MECHANISM, fine).body  # the ledger lives on


def test_a_restart_and_an_auditor_know_of_it(tmp_path: Path) -> None:
    ledger = new_ledger("sqlite", tmp_path)
    with pytest.raises(ReleaseAbandoned):
        gate(ledger).release(key(), b"r", MECHANISM, fails)
    ledger.close()
    ledger = open_ledger(LedgerFiles(tmp_path / "ledger"))
    with pytest.raises(ReleaseAbandoned):
        gate(ledger).release(key(), b"r", MECHANISM, never)
    summary = verify_export(list(export_lines(ledger)))
    assert (summary.abandoned, summary.accounts[0].spent) == (1, COST)
    ledger.close()


def test_a_recovery_adopts_its_price(tmp_path: Path) -> None:
    ledger = new_ledger("sqlite", tmp_path)
    with pytest.raises(ReleaseAbandoned):
        gate(ledger).release(key(), b"r", MECHANISM, fails)
    ledger.close()
    old = LedgerFiles(tmp_path / "ledger")
    old.stopped.touch()
    assert recover_ledger(old, LedgerFiles(tmp_path / "new"))[""] >= COST


def test_a_killed_process_draws_again_under_the_same_charge(ledger: Ledger) -> None:
    def killed() -> IntArray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gate(ledger).release(key(), b"r", MECHANISM, killed)
    assert gate(ledger).release(key(), b"r", MECHANISM, fine).body
    assert ledger.budget().spent == COST


@pytest.mark.slow
def test_killed_at_any_write_it_is_charged_once_and_abandoned_at_the_latest_next_time(
    tmp_path: Path,
) -> None:
    def answer(
        ledger: Ledger, key: ReleaseKey, request: bytes, at: Callable[[object], None], _: Send
    ) -> None:
        Gate(ledger, OsNoise(), at=at).release(key, request, crash.MECHANISM, fails)

    killed = 0
    for step in ("committed", "mirrored"):
        for number in range(1, 6):  # the start's mirror, then charge and entry of two releases
            files = crash.fresh_ledger(tmp_path / f"{step}{number}")
            _, status = run_party(files, crash.ChildPlan(range(2), answer, (number, step)))
            killed += os.WIFSIGNALED(status)
            frames, status = run_party(files, crash.ChildPlan(range(2), answer))
            assert [frame.payload for frame in frames[1:]] == [b"release_abandoned"] * 2
            durable = read_durable(files.database)
            assert durable.charges == {0: [crash.MECHANISM.cost], 1: [crash.MECHANISM.cost]}
            assert durable.bodies == {}
    assert killed == 10


def test_a_failing_ledger_abandons_nothing_and_stops(ledger: Ledger) -> None:
    def reads_the_ledger() -> IntArray:
        raise LedgerFailed("a stored release has changed")

    with pytest.raises(LedgerFailed):
        gate(ledger).release(key(), b"r", MECHANISM, reads_the_ledger)
    assert ledger.state.abandoned == set()


def test_only_those_made_together_are_abandoned(ledger: Ledger) -> None:
    def ask(round_: int) -> ReleaseRequest:
        return ReleaseRequest(key(round_), MECHANISM, digest(b"r"))

    def many_fail(_: Sequence[ReleaseKey]) -> list[IntArray]:
        raise ZeroDivisionError

    before = gate(ledger).release(key(0), b"r", MECHANISM, fine)
    replies = gate(ledger).release_many([ask(0), ask(1), ask(2)], many_fail)
    assert [getattr(reply, "body", None) for reply in replies] == [before.body, None, None]
    assert ledger.state.abandoned == {key(1), key(2)}
    assert gate(ledger).release(key(3), b"r", MECHANISM, fine).body


def test_what_was_abandoned_is_not_stored_nor_the_reverse(ledger: Ledger) -> None:
    ledger.charge(key(0), MECHANISM, request_sha256=digest(b"r"))
    ledger.abandon_many([key(0)])
    with pytest.raises(ValueError, match="not charged"):
        ledger.store(key(0), b"body")
    gate(ledger).release(key(1), b"r", MECHANISM, fine)
    for strange in (key(0), key(1), key(2)):  # abandoned, stored, never charged
        with pytest.raises(ValueError, match="abandoned"):
            ledger.abandon_many([strange])
    lines = [*ledger.lines()]
    entry = Abandoned("job", 1, "share", [""])
    forged = [*lines, line_of(entry, seq=len(lines) + 1, time=1)]
    state = replace(ledger.state)
    with pytest.raises(Exception, match="abandoned") as damaged:
        apply_line(state, forged[-1])
    assert getattr(damaged.value, "code", "") == "ledger_damaged"


class FailsFirst(SeededNoise):
    """Fails at its first draw, as a bug would that one job meets."""

    broken = True

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        if self.broken:
            self.broken = False
            raise ValueError("a bug")
        return super().discrete_gaussian(sigma2, size)


def test_a_party_that_met_a_bug_answers_the_next_job(tmp_path: Path) -> None:
    made, names = founded(), NAMES[:2]

    async def scenario() -> None:
        async with (
            coordinator(made) as hub,
            party(made, names[0], hub.address, tmp_path, noise=FailsFirst(0)) as buggy,
            party(made, names[1], hub.address, tmp_path),
        ):
            await hub.attached(*names)
            first = await hub.submit(make_job(made, names))
            assert await hub.ended(first) == "failed"
            assert "release_abandoned" in await reason(hub, first)
            second = await hub.submit(make_job(made, names, salt=1))
            assert await hub.ended(second) == "finished"
            assert not buggy.task.done()
            assert len(buggy.ledger.state.abandoned) == 1

    asyncio.run(scenario())


async def reason(hub: Running, name: str) -> str:
    rows = await hub.serving.worker.do(hub.store.jobs)
    return next(row.reason for row in rows if row.job_id == name)


def test_a_bug_in_answering_or_considering_ends_no_party(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, names = founded(), NAMES[:2]

    def bug(*_: object) -> None:
        raise IndexError("a bug")

    async def scenario() -> None:
        async with everyone(made, names, tmp_path) as (hub, members):
            for salt, method in enumerate(["answer", "_admit"]):
                with monkeypatch.context() as patch:
                    patch.setattr(Vault, method, bug)
                    name = await hub.submit(make_job(made, names, salt=salt))
                    assert await hub.ended(name) == "failed"
                assert "(internal)" in await reason(hub, name)
            last = await hub.submit(make_job(made, names, salt=2))
            assert await hub.ended(last) == "finished"
            assert not any(member.task.done() for member in members.values())

    asyncio.run(scenario())


def test_a_party_considers_a_job_that_meets_a_bug_as_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = ledger_of(CAP)
    vault, before = vault_of(ledger), ledger.head
    monkeypatch.setattr(ColumnJobs, "check_table", lambda *_: 1 // 0)
    decision = vault.consider(job_to_bytes(make_job(founded(), NAMES[:2])))
    assert (decision.accepted, decision.code, decision.message) == (False, "internal", "")
    assert ledger.head == before
