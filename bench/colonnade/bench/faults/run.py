"""Many simulations, each beside what its jobs come to without faults."""

import functools
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from colonnade.bench.faults.cases import Organizations, Start
from colonnade.bench.faults.jobs import OVER_CLIENTS, make_job, training
from colonnade.bench.faults.plan import Ask, SimulationPlan, plan_of, price
from colonnade.bench.faults.world import WorldOutcome, simulate
from colonnade.client.predict_builder import model_from_releases
from colonnade.methods.job import Job, job_id
from colonnade.methods.problem import Solution
from colonnade.server.store.base import State
from colonnade.wire.jobspec import job_to_bytes

_TOGETHER = 20  # seeds that a process takes at once


@dataclass
class Tally:
    """The sums over all seeds, and what was violated under which."""

    seeds: int = 0
    steps: int = 0
    kills: int = 0
    power_cuts: int = 0
    restarts: int = 0
    finished: int = 0  # jobs, each compared with its run without faults
    ended: int = 0  # jobs that failed or were cancelled, as they may
    failures: dict[int, list[str]] = field(default_factory=dict)  # by seed
    by_method: dict[str, int] = field(default_factory=dict)

    @property
    def violations(self) -> int:
        """How many there were in all."""
        return sum(map(len, self.failures.values()))

    def add(self, plan: SimulationPlan, outcome: WorldOutcome) -> None:
        """Count one simulation."""
        self.seeds += 1
        self.steps += outcome.steps
        self.kills += outcome.kills
        self.power_cuts += outcome.power_cuts
        self.restarts += outcome.restarts
        finished = [*outcome.states.values()].count(State.FINISHED)
        self.finished += finished
        self.ended += len(outcome.states) - finished
        self.by_method[plan.method] = self.by_method.get(plan.method, 0) + 1
        if outcome.violations:
            self.failures[plan.seed] = outcome.violations

    def merge(self, other: "Tally") -> None:
        """Add the counts of other seeds."""
        for name in ("seeds", "steps", "kills", "power_cuts", "restarts", "finished", "ended"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failures |= other.failures
        for method, count in other.by_method.items():
            self.by_method[method] = self.by_method.get(method, 0) + count


class Campaign:
    """Simulations of the same organizations."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "simulated"
        self._organizations = Organizations(folder / "organizations")
        self._references: dict[str, WorldOutcome] = {}
        self._starts: dict[tuple[str, tuple[str, ...]], Start] = {}

    def run(
        self, seed: int, *, method: str | None = None, small: bool = False
    ) -> tuple[SimulationPlan, WorldOutcome]:
        """Simulate what ``seed`` says and compare every finished job with its reference."""
        plan = plan_of(seed, self._organizations, method=method, small=small, start_of=self._start)
        outcome = simulate(plan, self._organizations, self._folder)
        for ask in plan.asks:
            outcome.violations.extend(self._differences(plan, ask.job, outcome))
            name = _name(ask.job)
            state, cancels = outcome.states.get(name), ask.cancelled_at is not None
            if state is State.FAILED and not plan.may_fail:
                reason = outcome.reasons[name]
                outcome.violations.append(f"a job failed that nothing kept from its end: {reason}")
            if state is State.CANCELLED and not cancels:
                outcome.violations.append("a job was cancelled that nobody cancelled")
        return plan, outcome

    def _differences(self, plan: SimulationPlan, job: Job, outcome: WorldOutcome) -> Iterator[str]:
        """Yield in what a finished job differs from its run without faults."""
        name = _name(job)
        if outcome.states.get(name) is not State.FINISHED:
            return
        if plan.method in OVER_CLIENTS and plan.may_fail:
            return  # a client that is away, refuses or cannot pay is not in the model, by design
        reference = self._reference(plan, job)
        if reference.states.get(name) is not State.FINISHED or reference.violations:
            yield "the job does not come to its end without faults either"
            return
        bodies = [row.body for row in reference.iterates[name]]
        if [row.body for row in outcome.iterates[name]] != bodies:
            yield "the model differs from that without faults"
        for party in plan.names:
            if outcome.spent.get((name, party)) != reference.spent.get((name, party)):
                yield f"{party}: the job cost something else than without faults"
            given = reference.results[party].items()
            if any(outcome.results[party].get(at) != body for at, body in given):
                yield f"{party}: was given something else than without faults"

    def _start(self, method: str, names: tuple[str, ...]) -> Start:
        """Return where a prediction begins, or an evaluation: after a fit, or after scores."""
        if (method, names) not in self._starts:
            made = self._scored(names) if method == "evaluation" else self._fitted(names)
            self._starts[method, names] = made
        return self._starts[method, names]

    def _fitted(self, names: tuple[str, ...]) -> Start:
        job = training(self._organizations, names)
        plan = SimulationPlan(0, "moments", names, (Ask(job, 0.0),), 4 * price(job))
        outcome, name = self._simulated(plan), _name(job)
        return Start(name, job, plan.cap, outcome.releases[name], outcome.disks)

    def _scored(self, names: tuple[str, ...]) -> Start:
        start = self._start("prediction", names)
        job = make_job(self._organizations, "prediction", names, salt=0, short=False, start=start)
        plan = SimulationPlan(0, "prediction", names, (Ask(job, 0.0),), start.cap, start=start)
        outcome = self._simulated(plan)
        model = model_from_releases(job_to_bytes(start.job), start.releases, Solution())
        return replace(start, disks=outcome.disks, files=outcome.files, model=model, run=_name(job))

    def _simulated(self, plan: SimulationPlan) -> WorldOutcome:
        outcome = simulate(plan, self._organizations, self._folder)
        if outcome.violations or {*outcome.states.values()} != {State.FINISHED}:
            raise RuntimeError(
                f"a job without faults failed: {outcome.violations, outcome.reasons}"
            )
        return outcome

    def _reference(self, plan: SimulationPlan, job: Job) -> WorldOutcome:
        name = _name(job)
        if name not in self._references:
            made = simulate(plan.alone(job), self._organizations, self._folder)
            if made.violations:
                return made
            self._references[name] = made
        return self._references[name]

    def close(self) -> None:
        """Let the tables go."""
        self._organizations.close()


def run_faults(
    folder: Path,
    seeds: Sequence[int],
    *,
    method: str | None = None,
    small: bool = False,
    workers: int = 1,
    progress: Callable[[Tally], None] = lambda _tally: None,
) -> Tally:
    """Simulate all ``seeds``, in ``workers`` processes, and return the sums.

    ``progress`` is told of every few seeds as they are done.
    """
    size = 1 if workers == 1 else max(1, min(_TOGETHER, len(seeds) // (4 * workers)))
    pieces = (seeds[at : at + size] for at in range(0, len(seeds), size))  # of any number
    tally, work = Tally(), functools.partial(_simulate, method, small)
    with ExitStack() as stack:
        if workers == 1:
            _begin(folder)
            stack.callback(_end)
            parts: Iterable[Tally] = map(work, pieces)
        else:
            spawned = multiprocessing.get_context("spawn")
            pool = stack.enter_context(spawned.Pool(workers, _begin_beside, (folder,)))
            parts = pool.imap_unordered(work, pieces)
        for part in parts:
            tally.merge(part)
            progress(part)
    return tally


_running: list[Campaign] = []  # of this process


def _begin(folder: Path) -> None:
    _running.append(Campaign(folder / f"process {os.getpid()}"))


def _begin_beside(folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the first process ends the others
    _begin(folder)


def _end() -> None:
    _running.pop().close()


def _simulate(method: str | None, small: bool, seeds: Sequence[int]) -> Tally:
    tally = Tally()
    with _quiet():
        for seed in seeds:
            tally.add(*_running[-1].run(seed, method=method, small=small))
    return tally


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the shipped code from telling of every fault: there are thousands, and all are meant."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _name(job: Job) -> str:
    return job_id(job_to_bytes(job))
