"""Many simulations, each beside what its jobs come to without faults."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from colonnade.bench.faults.cases import Organizations
from colonnade.bench.faults.plan import Plan, plan_of
from colonnade.bench.faults.world import Outcome, simulate
from colonnade.methods.job import Job, job_id
from colonnade.server.store.base import State
from colonnade.wire.jobspec import job_to_bytes


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

    def add(self, plan: Plan, outcome: Outcome) -> None:
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


class Campaign:
    """Simulations of the same organizations."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "simulated"
        self._organizations = Organizations(folder / "organizations")
        self._references: dict[str, Outcome] = {}

    def run(self, seed: int, *, method: str | None = None) -> tuple[Plan, Outcome]:
        """Simulate what ``seed`` says and compare every finished job with its reference."""
        plan = plan_of(seed, self._organizations, method=method)
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

    def _differences(self, plan: Plan, job: Job, outcome: Outcome) -> Iterator[str]:
        """Yield in what a finished job differs from its run without faults."""
        name = _name(job)
        if outcome.states.get(name) is not State.FINISHED:
            return
        if plan.method == "admm" and plan.may_fail:
            return  # a client that is away, refuses or cannot pay is not in the model, by design
        reference = self._reference(plan, job)
        if reference.states.get(name) is not State.FINISHED or reference.violations:
            yield "the job does not come to its end without faults either"
            return
        bodies = [row.body for row in reference.iterates[name]]
        if [row.body for row in outcome.iterates[name]] != bodies:
            yield "the model differs from that without faults"
        for party in plan.names:
            if outcome.spent.get((name, party)) != reference.spent[name, party]:
                yield f"{party}: the job cost something else than without faults"

    def _reference(self, plan: Plan, job: Job) -> Outcome:
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
    seeds: Iterable[int],
    *,
    method: str | None = None,
    progress: Callable[[int, Tally], None] = lambda _seed, _tally: None,
) -> Tally:
    """Simulate all ``seeds`` and return the sums."""
    tally, campaign = Tally(), Campaign(folder)
    try:
        with _quiet():
            for seed in seeds:
                tally.add(*campaign.run(seed, method=method))
                progress(seed, tally)
    finally:
        campaign.close()
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
