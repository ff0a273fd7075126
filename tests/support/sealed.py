"""Small sealed jobs, a second way to multiply polynomials, and noise in parts."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.ledger.gate import Gate, Step
from colonnade.ledger.ledger import Ledger
from colonnade.methods.problem import Problem
from colonnade.methods.sealed.plan import recommend
from colonnade.methods.sealed.ring import DEGREE, MODULUS, add_products, seal_ring
from colonnade.methods.sealed.solver.steps import SealedSolver, SealedState
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.methods.sealed.tasks import SealedTask, statement
from colonnade.party.data.columns import Columns
from colonnade.party.methods.sealed import SealedParty
from colonnade.party.methods.sealed_keys import KeyStore, MemoryKeys
from colonnade.party.methods.sealed_peers import PinnedPeers
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.sampling import NoiseSource
from colonnade.simulate.inprocess.vertical import Data, grid
from support.entropy import ShakeNoise

JOB = "sealed job"


class ErrorsOnly(ShakeNoise):
    """Keys, errors and masks as shipped; the releases' noise left out."""

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        drawn = super().discrete_gaussian(sigma2, size)
        return drawn if sigma2 < 100 else np.zeros(size, np.int64)


def negacyclic(polynomial: IntArray, small: IntArray) -> IntArray:
    """Multiply modulo ``x**DEGREE + 1``, by convolutions of 18-bit limbs."""
    total = np.zeros(DEGREE, object)
    for place in range(3):
        limb = (polynomial >> (18 * place)) & ((1 << 18) - 1)
        whole = np.convolve(limb, small)
        folded = whole[:DEGREE].copy()
        folded[: whole.size - DEGREE] -= whole[DEGREE:]
        total = total + folded.astype(object) * (1 << (18 * place))
    return (total % MODULUS).astype(np.int64)


def small_data(widths: tuple[int, ...] = (2, 3, 4), *, n_rows: int = 3000, seed: int = 1) -> Data:
    """Return a table whose columns have a common cause; the label is the first party's."""
    make = np.random.default_rng(seed)
    count = sum(widths)
    cause = make.standard_normal(n_rows)
    columns = 0.7 * make.standard_normal((count, n_rows)) + 0.5 * cause
    label = columns[[0, widths[0], count - 1]].sum(axis=0) + 0.5 * make.standard_normal(n_rows)
    ends = np.cumsum((0, *widths))
    splits = tuple(tuple(range(a, b)) for a, b in itertools.pairwise(ends.tolist()))
    return Data(grid(columns / 4), grid(label / 8), splits)


def problem_of(data: Data, *, epsilon: float = 1.0) -> Problem:
    return Problem(
        n_rows=data.label.size,
        features={f"p{k}": [f"x{i}" for i in split] for k, split in enumerate(data.splits)},
        rho_units=units_down(rho_of(epsilon, 1e-6)),
        label_owner="p0",
    )


def small_spec(data: Data, *, epsilon: float = 1.0, **changes: object) -> SealedSpec:
    """Return the planned job, with fewer buckets so that rows share them."""
    changes = {"buckets": 2048, **changes}
    keep = changes.pop("keep", None)
    spec = recommend(problem_of(data, epsilon=epsilon), keep=keep).spec  # type: ignore[arg-type]
    return replace(spec, **changes)  # type: ignore[arg-type]


def before(
    members: dict[str, SealedParty], spec: SealedSpec, round_: int
) -> tuple[SealedState, dict[str, SealedTask]]:
    """Run all rounds before ``round_``; return the state and that round's tasks."""
    solver = SealedSolver(spec)
    state = solver.start()
    while state.round < round_:
        answers = {}
        for name, task in solver.tasks(state).items():
            released = members[name].answer(task, request_of(task))
            answers[name] = {release.key.kind: release.body for release in released}
        state = solver.absorb(state, answers)
    return state, solver.tasks(state)


def request_of(task: SealedTask) -> bytes:
    return b"%d" % task.round


def sealed_party(
    spec: SealedSpec,
    job: str,
    name: str,
    columns: Columns,
    noise: NoiseSource,
    ledgers: dict[str, Ledger],
    *,
    keys: KeyStore | None = None,
    at: Callable[[Step], None] | None = None,
) -> SealedParty:
    """Return one party of a job whose peers' keys are those of ``ledgers``."""
    ledger = ledgers[name]
    pins = {each: bytes.fromhex(book.opened.public_key) for each, book in ledgers.items()}
    return SealedParty(
        spec=spec,
        job=job,
        part=spec.part(name),
        columns=columns,
        gate=Gate(ledger, noise) if at is None else Gate(ledger, noise, at=at),
        ledger=ledger,
        peers=PinnedPeers(spec, job, pins),
        keys=keys or MemoryKeys(),
        ring=seal_ring(),
    )


def dot(
    pairs: Sequence[tuple[IntArray, IntArray]], smalls: Sequence[IntArray]
) -> tuple[IntArray, IntArray]:
    """Return the sum of pairs of polynomials times small ones."""
    ring = seal_ring()
    values = ring.forward(np.concatenate([np.stack(pair) for pair in pairs]))
    found = np.zeros((2, DEGREE), np.uint64)
    factors = ring.forward(np.stack(smalls))
    add_products(values.reshape(-1, 2, DEGREE), factors, found)
    first, second = ring.inverse(found)
    return first, second


def signed(member: SealedParty, kind: str, round_: int, payload: bytes, answers: str = "") -> bytes:
    """Return a body as its party would sign it, whatever it holds."""
    said = statement(
        job=JOB,
        round_=round_,
        party=member.part.party,
        kind=kind,
        payload=payload,
        answers=answers,
    )
    return payload + member.ledger.sign(said)
