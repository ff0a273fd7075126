"""Federated ADMM in one process: the shipped steps of both sides, without wire or processes.

Quality is measured on the clients' rows in the open: simulation only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import FloatArray, Int16Array, IntArray
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.methods.admm.prox import ClientRows, design, factorise
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.party.methods.admm import AdmmHost
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.privacy.sampling import NoiseSource
from colonnade.server.methods.admm.state import SEED_BYTES, AdmmState
from colonnade.server.methods.admm.steps import AdmmCoordinator
from colonnade.wire.cohort import ClientAnswers, concat


def partition(
    columns: Int16Array, label: Int16Array, n_clients: int, *, seed: int, skewed: bool = False
) -> list[ClientRows]:
    """Deal rows out to clients, equally many to each; what is left over is dropped.

    Skewed, clients get rows of like labels: every client sees a narrow range of them.
    """
    parts = deal(label, n_clients, seed=seed, skewed=skewed)
    return [ClientRows(np.ascontiguousarray(columns[:, part]), label[part]) for part in parts]


def deal(
    label: FloatArray | Int16Array, n_clients: int, *, seed: int, skewed: bool = False
) -> IntArray:
    """Return which rows each client gets, one client in a row."""
    order = np.random.default_rng(seed).permutation(label.size)
    each = label.size // n_clients
    if not each:
        raise ValueError("there are fewer rows than clients")
    order = order[: each * n_clients]
    if skewed:
        order = order[np.argsort(label[order], kind="stable")]
    return order.reshape(n_clients, each)


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """All clients' rows in one place, each client with the same total weight."""

    spec: AdmmSpec
    rows: FloatArray  # (n_rows, dim)
    y: FloatArray
    weights: FloatArray  # of the rows; they add up to 1

    @classmethod
    def of(cls, clients: Sequence[ClientRows], spec: AdmmSpec) -> "Pool":
        """Gather the rows of ``clients``."""
        parts = [design(client, spec) for client in clients]
        weights = [np.full(len(y), 1.0 / (len(clients) * len(y))) for _, y in parts]
        rows, y = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cls(spec, rows, y, np.concatenate(weights))

    def objective(self, coef: FloatArray) -> float:
        """Return the value of the job's objective."""
        margins = self.rows @ coef
        if self.spec.loss.classifies:
            losses = np.logaddexp(0.0, -self.y * margins)
        else:
            losses = (margins - self.y) ** 2 / 2.0
        return float(self.weights @ losses) + self.spec.penalty.value(coef, self.spec.scales)

    def gradient(self, coef: FloatArray) -> FloatArray:
        """Return the gradient of the losses' part."""
        margins = self.rows @ coef
        slopes = margins - self.y
        if self.spec.loss.classifies:
            slopes = -self.y / (1.0 + np.exp(np.clip(self.y * margins, -500.0, 500.0)))
        return self.rows.T @ (self.weights * slopes)

    def score(self, coef: FloatArray) -> float:
        """Return the share of rows classified rightly, or R2."""
        margins = self.rows @ coef
        if self.spec.loss.classifies:
            return float(self.weights @ ((margins > 0) == (self.y > 0)))
        rest = float(self.weights @ (margins - self.y) ** 2)
        mean = float(self.weights @ self.y)
        return 1.0 - rest / float(self.weights @ (self.y - mean) ** 2)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What goes wrong in a round, for each client that is asked.

    Parameters
    ----------
    drop_out
        Chance that it does not answer at all in this round; it is asked again when sampled again.
    late
        Chance that its answer comes after the round has closed, during the next one.
    """

    drop_out: float = 0.0
    late: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedOutcome:
    """The end of a simulated job."""

    state: AdmmState
    coef: FloatArray
    ledger: Ledger
    releases: int
    payload_bytes: int
    log: tuple[ClientAnswers, ...]  # what was stored in each drawing, in order


def make_host(
    spec: AdmmSpec,
    clients: Sequence[ClientRows],
    noise: NoiseSource,
    *,
    job: str,
    cap: int = MAX_UNITS,
) -> AdmmHost:
    """Make a host of all clients, with one simulation ledger in memory and an account for each."""
    ledger = memory_ledger(LedgerConfig("host", {"": cap}, simulation=True))
    accounts = [f"c{number}" for number in range(len(clients))]
    gate = Gate(ledger, noise)
    problems = factorise(clients, spec)
    return AdmmHost(spec, job, problems, accounts, b"", gate, ledger)


def run(
    spec: AdmmSpec,
    clients: Sequence[ClientRows],
    noise: NoiseSource,
    *,
    seed: int = 0,
    job: str = "job",
    trouble: Trouble | None = None,
    cap: int = MAX_UNITS,
    on_round: Callable[[AdmmState], None] | None = None,
) -> SimulatedOutcome:
    """Run a job to its end.

    Parameters
    ----------
    seed
        Of sampling and trouble, not of the noise.
    cap
        Of every client's account, in units.
    """
    host = make_host(spec, clients, noise, job=job, cap=cap)
    return run_with(host, seed=seed, trouble=trouble or Trouble(), on_round=on_round)


def run_with(
    host: AdmmHost,
    *,
    seed: int,
    trouble: Trouble,
    on_round: Callable[[AdmmState], None] | None = None,
) -> SimulatedOutcome:
    """Run a job with the clients of ``host``."""
    coordinator = AdmmCoordinator(host.spec)
    state = coordinator.start(seed.to_bytes(SEED_BYTES, "little"))
    draw = np.random.default_rng((seed, 1))
    late, log, nobody = concat(), [], np.empty(0, np.int64)
    state = coordinator.decline(state, *host.admit())
    while not coordinator.finished(state):
        tasks = coordinator.tasks(state)
        expected = coordinator.expected(state)
        there = draw.random(tasks.clients.size) >= trouble.drop_out
        said = ask(host, tasks, there)
        coins = draw.random(len(said.bodies))
        # Others were asked again for what was already on its way.
        new = ~np.isin(said.clients, late.clients)
        size = host.spec.release(state.round).code.n_bytes
        coordinator.check(expected, said.only(new), size)
        stored = concat(late, said.only(new & (coins >= trouble.late)))
        late = replace(said.only(new & (coins < trouble.late)), declined=nobody)
        after = coordinator.absorb(state, stored)
        log.append(stored)
        if on_round is not None and after.round > state.round:
            on_round(after)
        state = after
    kept = host.ledger.state.stored
    releases, payload = len(kept), sum(each.body_bytes for each in kept.values())
    return SimulatedOutcome(
        state, coordinator.coefficients(state), host.ledger, releases, payload, tuple(log)
    )


def ask(
    host: AdmmHost, tasks: ClientTasks, there: NDArray[np.bool_] | None = None
) -> ClientAnswers:
    """Put the tasks to the clients that are ``there``."""
    replies = host.answer(tasks if there is None else tasks.only(there))
    return ClientAnswers(
        np.array([*replies.released], np.int64),
        np.array([each.key.round for each in replies], np.int64),
        [each.body for each in replies],
        np.array(replies.declined, np.int64),
    )
