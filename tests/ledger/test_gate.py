"""The one door: its order, its replays, its refusals."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.entropy import ScriptedNoise
from support.ledgers import CAP, MECHANISM, VALUE, digest, key, new_ledger

from colonnade.core.arrays import IntArray
from colonnade.core.errors import (
    BudgetExceeded,
    JobClosed,
    LedgerDamaged,
    LedgerFailed,
    NotPrivate,
    ReleaseAbandoned,
    ReleasePurged,
    RequestConflict,
)
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate, Step, int64_bytes
from colonnade.ledger.ledger import MAX_TOGETHER, Ledger, Released
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import Head, LedgerState
from colonnade.ledger.storage.base import MAX_BODY_BYTES, MemoryStorage, StoredRow
from colonnade.ledger.storage.mirror import HeadMirror
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.membership import MEMBERSHIP, Covered
from colonnade.privacy.sampling import OsNoise
from colonnade.privacy.simulation import SeededNoise, ZeroNoise


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return new_ledger(request.param, tmp_path)


def compute() -> IntArray:
    return VALUE.copy()


def never() -> IntArray:
    raise AssertionError("the data must not be read")


def test_a_release_is_charged_before_the_data_is_read_and_stored_before_it_is_handed_out(
    ledger: Ledger,
) -> None:
    seen: list[tuple[str, int, bool]] = []

    def look(step: Step) -> None:
        seen.append((step.value, ledger.budget().spent, ledger.stored(key()) is not None))

    def reading() -> IntArray:
        seen.append(("read", ledger.budget().spent, ledger.stored(key()) is not None))
        return VALUE.copy()

    Gate(ledger, OsNoise(), at=look).release(key(), b"r", MECHANISM, reading)
    cost = MECHANISM.cost
    assert seen == [
        ("asked", 0, False),
        ("charged", cost, False),
        ("read", cost, False),
        ("computed", cost, False),
        ("drawn", cost, False),
        ("stored", cost, True),
    ]


def test_a_retry_replays_the_same_bytes_without_charge_noise_or_data(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())
    first = gate.release(key(), b"r", MECHANISM, compute)
    again = [gate.release(key(), b"r", MECHANISM, never) for _ in range(50)]
    assert {released.body for released in again} == {first.body}
    assert {released.receipt for released in again} == {first.receipt}
    assert ledger.budget().spent == MECHANISM.cost


def test_averaging_retries_gains_nothing(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())
    bodies = [gate.release(key(), b"r", MECHANISM, compute).body for _ in range(1000)]
    answers = np.stack([np.frombuffer(body, "<i8") for body in bodies])
    assert answers.var(axis=0).tolist() == [0.0] * VALUE.size


def test_a_changed_request_under_a_used_key_is_refused_and_changes_nothing(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())
    gate.release(key(), b"r", MECHANISM, compute)
    head = ledger.head
    with pytest.raises(RequestConflict):
        gate.release(key(), b"s", MECHANISM, never)
    cheaper = DiscreteGaussian(sigma2=500, l2_sensitivity2=4)
    with pytest.raises(RequestConflict):
        gate.release(key(), b"r", cheaper, never)
    assert ledger.head == head


def test_the_same_price_with_another_mechanism_is_another_request(ledger: Ledger) -> None:
    other = DiscreteGaussian(sigma2=MECHANISM.sigma2 // 2, l2_sensitivity2=2)
    assert other.cost == MECHANISM.cost
    gate = Gate(ledger, OsNoise())
    ledger.charge(key(), MECHANISM, request_sha256=digest(b"r"))
    with pytest.raises(RequestConflict):
        gate.release(key(), b"r", other, never)


def test_a_stand_in_cannot_replace_the_mechanism_that_was_paid_for(ledger: Ledger) -> None:
    class Quiet(DiscreteGaussian):
        def perturb(self, value: IntArray, noise: object) -> IntArray:
            return value

    quiet = Quiet(MECHANISM.sigma2, MECHANISM.l2_sensitivity2)
    wide = np.zeros(200, np.int64)
    released = Gate(ledger, OsNoise()).release(key(), b"r", quiet, lambda: wide)
    # With sigma2 = 50 the chance that 200 samples are all zero is below 2**-700.
    assert any(np.frombuffer(released.body, "<i8"))


def test_a_price_of_any_size_is_refused_and_not_an_accident(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        Gate(ledger, OsNoise()).release(key(), b"r", DiscreteGaussian(1, 10**400), never)


def test_several_gates_on_one_ledger_take_turns(ledger: Ledger) -> None:
    errors: list[Exception] = []

    def ask(gate: Gate, round_: int) -> None:
        try:
            for _ in range(5):
                gate.release(key(round_), b"r", MECHANISM, compute)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    gates = [Gate(ledger, OsNoise()) for _ in range(4)]
    threads = [threading.Thread(target=ask, args=(g, i)) for i, g in enumerate(gates)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert ledger.budget().spent == 4 * MECHANISM.cost


def test_a_release_beyond_the_cap_touches_neither_data_nor_ledger(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())
    affordable = CAP // MECHANISM.cost
    for round_ in range(affordable):
        gate.release(key(round_), b"r", MECHANISM, compute)
    head = ledger.head
    with pytest.raises(BudgetExceeded):
        gate.release(key(affordable), b"r", MECHANISM, never)
    assert ledger.head == head
    assert ledger.budget().spent <= CAP
    assert gate.release(key(0), b"r", MECHANISM, never).body  # replays still work


def test_an_interrupted_computation_stays_charged_and_is_answered_at_the_next_try(
    ledger: Ledger,
) -> None:
    gate = Gate(ledger, OsNoise())

    def interrupted() -> IntArray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gate.release(key(), b"r", MECHANISM, interrupted)
    assert ledger.budget().spent == MECHANISM.cost  # no free probe
    released = gate.release(key(), b"r", MECHANISM, compute)
    assert len(released.body) == 8 * VALUE.size
    assert ledger.budget().spent == MECHANISM.cost


def test_two_askers_of_one_key_get_one_draw(ledger: Ledger) -> None:
    # SQLite connections belong to one thread at a time; the gate's lock sees to that.
    gate = Gate(ledger, OsNoise())
    bodies: list[bytes] = []
    barrier = threading.Barrier(8)

    def ask() -> None:
        barrier.wait()
        bodies.append(gate.release(key(), b"r", MECHANISM, compute).body)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(bodies) == 8
    assert len(set(bodies)) == 1
    assert ledger.budget().spent == MECHANISM.cost


def test_a_purged_release_is_never_drawn_again(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())
    gate.release(key(), b"r", MECHANISM, compute)
    ledger.purge(key())
    with pytest.raises(ReleasePurged):
        gate.release(key(), b"r", MECHANISM, never)
    assert ledger.stored(key()) is None
    assert ledger.budget().spent == MECHANISM.cost


def test_a_closed_job_replays_what_it_released_and_nothing_else(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())
    first = gate.release(key(0), b"r", MECHANISM, compute)
    ledger.close_job("job")
    assert gate.release(key(0), b"r", MECHANISM, never).body == first.body
    with pytest.raises(JobClosed):
        gate.release(key(1), b"r", MECHANISM, never)


@pytest.mark.parametrize("noise", [SeededNoise(1), ZeroNoise(), ScriptedNoise(0)])
def test_noise_that_is_not_secret_cannot_open_a_real_ledger(ledger: Ledger, noise: object) -> None:
    with pytest.raises(NotPrivate):
        Gate(ledger, noise)  # type: ignore[arg-type]


def test_a_subclass_of_the_real_noise_cannot_open_a_real_ledger(ledger: Ledger) -> None:
    class Quiet(OsNoise):
        def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
            return np.zeros(size, np.int64)

    with pytest.raises(NotPrivate):
        Gate(ledger, Quiet())


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_simulation_ledger_takes_any_noise_and_says_so(kind: str, tmp_path: Path) -> None:
    ledger = new_ledger(kind, tmp_path, simulation=True)
    released = Gate(ledger, ZeroNoise()).release(key(), b"r", MECHANISM, compute)
    assert released.body == int64_bytes(VALUE)
    assert ledger.opened.simulation


def test_only_integers_pass(ledger: Ledger) -> None:
    with pytest.raises(ReleaseAbandoned):
        Gate(ledger, OsNoise()).release(
            key(),
            b"r",
            MECHANISM,
            lambda: np.zeros(3),  # type: ignore[arg-type, return-value]
        )
    assert ledger.stored(key()) is None


def test_the_body_is_what_the_encoder_makes_of_noisy_integers(tmp_path: Path) -> None:
    ledger = new_ledger("memory", tmp_path, simulation=True)

    def coarse(value: IntArray) -> bytes:
        return bytes((value // 10).astype(np.uint8))

    gate = Gate(ledger, ScriptedNoise(100))
    released = gate.release(key(), b"r", MECHANISM, compute, encode=coarse)
    assert released.body == bytes([10] * 5)


def test_a_failed_ledger_answers_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger("memory", tmp_path)
    gate = Gate(ledger, OsNoise())

    def broken(*_: object, **__: object) -> None:
        raise LedgerFailed("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStorage, "append", broken)
        with pytest.raises(LedgerFailed):
            gate.release(key(), b"r", MECHANISM, never)
    # The disk is back, but what it holds is not known: only a new start may tell.
    calls: list[Callable[[], object]] = [
        lambda: gate.release(key(), b"r", MECHANISM, never),
        lambda: gate.release(key(1), b"r", MECHANISM, never),
        lambda: ledger.admit("other", units=5),
        lambda: ledger.close_job("job"),
    ]
    for call in calls:
        with pytest.raises(LedgerFailed):
            call()


# -- many together -------------------------------------------------------------------------------


def ask(round_: int = 0, *, account: str = "", request: bytes = b"r") -> ReleaseRequest:
    return ReleaseRequest(key(round_, account=account), MECHANISM, digest(request))


def computing(keys: Sequence[ReleaseKey]) -> list[IntArray]:
    return [VALUE.copy() for _ in keys]


def reading_nothing(keys: Sequence[ReleaseKey]) -> list[IntArray]:
    raise AssertionError("the data must not be read")


def test_releases_that_go_together_are_all_charged_first_and_all_stored_before_any_leaves(
    ledger: Ledger,
) -> None:
    requests = [ask(account=f"c{client}") for client in range(3)]
    seen: list[tuple[str, int, int]] = []

    def look(step: str) -> None:
        paid = sum(ledger.budget(each.key.account).spent > 0 for each in requests)
        seen.append((step, paid, sum(ledger.has(each.key) for each in requests)))

    def reading(keys: Sequence[ReleaseKey]) -> list[IntArray]:
        look("read")
        return computing(keys)

    gate = Gate(ledger, OsNoise(), at=lambda step: look(step.value))
    replies = gate.release_many(requests, reading)
    assert [reply.key for reply in replies if isinstance(reply, Released)] == [
        a.key for a in requests
    ]
    assert seen == [
        ("asked", 0, 0),
        ("charged", 3, 0),
        ("read", 3, 0),
        ("computed", 3, 0),
        *[("drawn", 3, 0)] * 3,
        ("stored", 3, 3),
    ]


def test_two_commits_serve_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new_ledger("memory", tmp_path)
    commits: list[int] = []
    real = MemoryStorage.append

    def append(
        self: MemoryStorage, rows: Sequence[StoredRow], head: Head, *, releases: bool
    ) -> None:
        commits.append(len(rows))
        real(self, rows, head, releases=releases)

    monkeypatch.setattr(MemoryStorage, "append", append)
    requests = [ask(account=f"c{client}") for client in range(40)]
    Gate(ledger, OsNoise()).release_many(requests, computing)
    Gate(ledger, OsNoise()).release_many(requests, reading_nothing)
    assert commits == [1, 1]  # one line each: those of one kind, round and price are one entry


def test_one_that_cannot_pay_is_refused_by_itself_and_its_data_is_not_read(
    tmp_path: Path,
) -> None:
    caps = {"": CAP, "poor": MECHANISM.cost - 1}
    ledger = new_ledger("memory", tmp_path, caps=caps)
    requests = [ask(account=name) for name in ("a", "poor", "b")]
    read: list[str] = []

    def reading(keys: Sequence[ReleaseKey]) -> list[IntArray]:
        read.extend(each.account for each in keys)
        return computing(keys)

    replies = Gate(ledger, OsNoise()).release_many(requests, reading)
    assert [type(reply) for reply in replies] == [Released, BudgetExceeded, Released]
    assert read == ["a", "b"]
    assert [ledger.budget(name).spent for name in ("a", "poor", "b")] == [
        MECHANISM.cost,
        0,
        MECHANISM.cost,
    ]


def test_an_account_asked_twice_at_once_pays_as_far_as_it_can(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())
    affordable = CAP // MECHANISM.cost
    replies = gate.release_many([ask(round_) for round_ in range(affordable + 2)], computing)
    kinds = [type(reply) for reply in replies]
    assert kinds == [Released] * affordable + [BudgetExceeded] * 2
    assert ledger.budget().spent == affordable * MECHANISM.cost <= CAP


def test_what_was_answered_is_replayed_beside_what_is_new(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())
    first = gate.release(key(1), b"r", MECHANISM, compute)
    asked: list[int] = []

    def reading(keys: Sequence[ReleaseKey]) -> list[IntArray]:
        asked.extend(each.round for each in keys)
        return computing(keys)

    replies = gate.release_many([ask(0), ask(1), ask(2)], reading)
    bodies = [reply.body for reply in replies if isinstance(reply, Released)]
    assert asked == [0, 2]
    assert bodies[1] == first.body
    again = gate.release_many([ask(2), ask(1), ask(0)], reading_nothing)
    assert [reply.body for reply in again if isinstance(reply, Released)] == bodies[::-1]
    assert ledger.budget().spent == 3 * MECHANISM.cost


def test_another_request_under_a_used_key_is_refused_by_itself(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())
    gate.release(key(0), b"r", MECHANISM, compute)
    replies = gate.release_many([ask(0, request=b"s"), ask(1)], computing)
    assert [type(reply) for reply in replies] == [RequestConflict, Released]


def test_every_one_has_noise_of_its_own(ledger: Ledger) -> None:
    requests = [ask(account=f"c{client}") for client in range(200)]
    wide = np.zeros(40, np.int64)
    replies = Gate(ledger, OsNoise()).release_many(requests, lambda keys: [wide for _ in keys])
    answers = {reply.body for reply in replies if isinstance(reply, Released)}
    assert len(answers) == 200  # two of them agree with a chance below 2**-150


def test_the_receipt_of_many_is_the_newest_ones_and_is_signed(ledger: Ledger) -> None:
    replies = Gate(ledger, OsNoise()).release_many([ask(0), ask(1), ask(2)], computing)
    released = [reply for reply in replies if isinstance(reply, Released)]
    receipts = {each.receipt for each in released}
    assert len(receipts) == 1
    (receipt,) = receipts
    assert (receipt.seq, receipt.chain_hash) == (ledger.head.seq, ledger.head.chain_hash)
    assert receipt.key_sha256 == key(2).digest()
    assert receipt.signed_by(bytes.fromhex(ledger.opened.public_key))
    ledger.check_evidence(receipt)


def test_an_interruption_amid_many_leaves_all_charged_and_none_answered(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())

    def interrupted(keys: Sequence[ReleaseKey]) -> list[IntArray]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gate.release_many([ask(0), ask(1)], interrupted)
    assert ledger.budget().spent == 2 * MECHANISM.cost
    assert not ledger.has(key(0))
    replies = gate.release_many([ask(0), ask(1)], computing)
    assert all(isinstance(reply, Released) for reply in replies)
    assert ledger.budget().spent == 2 * MECHANISM.cost


def test_asks_that_make_no_sense_are_refused_before_anything_is_charged(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())
    with pytest.raises(ValueError, match="twice"):
        gate.release_many([ask(0), ask(0)], reading_nothing)
    with pytest.raises(ValueError, match="together"):
        gate.release_many([ask(n) for n in range(MAX_TOGETHER + 1)], reading_nothing)
    assert ledger.budget().spent == 0
    assert gate.release_many([], reading_nothing) == []


def test_bodies_beyond_what_the_disk_was_asked_for_are_not_stored(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())
    replies = gate.release_many([ask(0), ask(1)], computing, encode=lambda _: bytes(MAX_BODY_BYTES))
    assert all(isinstance(reply, ReleaseAbandoned) for reply in replies)
    assert not ledger.has(key(0))
    assert gate.release(key(2), b"r", MECHANISM, compute).body  # the ledger goes on


def test_a_write_that_fails_amid_many_stops_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger("memory", tmp_path)
    gate = Gate(ledger, OsNoise())

    def broken(*_: object, **__: object) -> None:
        raise LedgerFailed("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStorage, "append", broken)
        with pytest.raises(LedgerFailed):
            gate.release_many([ask(0), ask(1)], reading_nothing)
    with pytest.raises(LedgerFailed):
        gate.release_many([ask(0), ask(1)], reading_nothing)


def test_a_batch_that_breaks_a_rule_half_way_stops_the_ledger(ledger: Ledger) -> None:
    # Memory is then ahead of the disk: only a new start, from the disk, may go on.
    ledger.charge(key(0), MECHANISM, request_sha256=digest(b"r"))
    with pytest.raises(ValueError, match="not charged"):
        ledger.store_many({key(0): b"x", key(1): b"y"})
    with pytest.raises(LedgerFailed):
        ledger.admit("other", units=1)
    with pytest.raises(LedgerFailed):
        Gate(ledger, OsNoise()).release_many([ask(2)], reading_nothing)


def test_the_head_is_on_disk_in_the_mirror_before_a_release_is_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger("sqlite", tmp_path)
    synced: list[int] = []
    sync = HeadMirror._sync

    def noted(self: HeadMirror) -> None:
        sync(self)
        synced.append(ledger.head.seq)

    monkeypatch.setattr(HeadMirror, "_sync", noted)
    Gate(ledger, OsNoise()).release(key(0), b"a", MECHANISM, VALUE.copy)
    assert synced[-1] == ledger.head.seq
    ledger.close()


def test_bytes_that_changed_where_they_are_kept_are_not_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger("memory", tmp_path)
    gate = Gate(ledger, OsNoise())
    gate.release(key(0), b"a", MECHANISM, VALUE.copy)
    body = MemoryStorage.body

    def changed(self: MemoryStorage, seq: int) -> bytes | None:
        found = body(self, seq)
        return None if found is None else bytes([found[0] ^ 1]) + found[1:]

    monkeypatch.setattr(MemoryStorage, "body", changed)
    with pytest.raises(LedgerFailed):
        gate.release(key(0), b"a", MECHANISM, VALUE.copy)


def test_a_release_that_costs_one_unit_more_than_was_admitted_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger("memory", tmp_path)
    ledger.admit(key(0).job, units=MECHANISM.cost - 1)
    with pytest.raises(BudgetExceeded):
        Gate(ledger, OsNoise()).release(key(0), b"a", MECHANISM, VALUE.copy)
    assert ledger.head.spent == 0


def test_an_entry_that_understates_its_price_by_one_unit_does_not_load(tmp_path: Path) -> None:
    ledger = new_ledger("memory", tmp_path)
    Gate(ledger, OsNoise()).release(key(0), b"a", MECHANISM, VALUE.copy)
    lines = list(ledger.lines())
    (place,) = [at for at, line in enumerate(lines) if '"type":"charged"' in line]
    state, told = LedgerState(), f'"units":{MECHANISM.cost}'
    assert told in lines[place]
    for line in lines[:place]:
        apply_line(state, line)
    with pytest.raises(LedgerDamaged, match="price"):
        apply_line(state, lines[place].replace(told, f'"units":{MECHANISM.cost - 1}'))


def test_what_is_covered_by_anything_but_dummies_is_not_free(tmp_path: Path) -> None:
    ledger = new_ledger("memory", tmp_path)
    gate = Gate(ledger, OsNoise())
    ledger.admit("job", units=MECHANISM.cost, account=MEMBERSHIP)
    first = ReleaseKey("job", 0, MEMBERSHIP, MEMBERSHIP)
    gate.release(first, b"a", MECHANISM, VALUE.copy)
    with pytest.raises(ValueError, match="dummies"):
        gate.release(first._replace(round=1, kind="points"), b"a", Covered(), VALUE.copy)
