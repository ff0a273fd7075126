"""The one door: its order, its replays, its refusals."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.entropy import ScriptedNoise
from support.ledgers import CAP, MECHANISM, VALUE, digest, key, new_ledger

from colonnade.core.arrays import IntArray
from colonnade.core.errors import (
    BudgetExceeded,
    JobClosed,
    LedgerFailed,
    NotPrivate,
    ReleasePurged,
    RequestConflict,
)
from colonnade.privacy.gate import Gate, Step, int64_bytes
from colonnade.privacy.ledger import Ledger
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.sampling import OsNoise
from colonnade.privacy.simulation import SeededNoise, ZeroNoise
from colonnade.privacy.storage import MemoryStorage


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
    class Quiet:
        cost = MECHANISM.cost

        def record(self) -> dict[str, int | str]:
            return MECHANISM.record()

        def perturb(self, value: IntArray, noise: object) -> IntArray:
            return value

    wide = np.zeros(200, np.int64)
    released = Gate(ledger, OsNoise()).release(key(), b"r", Quiet(), lambda: wide)
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


def test_a_failed_computation_stays_charged_and_is_answered_at_the_next_try(ledger: Ledger) -> None:
    gate = Gate(ledger, OsNoise())

    def fails() -> IntArray:
        raise MemoryError

    with pytest.raises(MemoryError):
        gate.release(key(), b"r", MECHANISM, fails)
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
    with pytest.raises(TypeError, match="64-bit integers"):
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
