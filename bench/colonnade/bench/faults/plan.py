"""What happens in a simulation, drawn from its seed."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from colonnade.bench.faults.cases import NAMES, Organizations, Start
from colonnade.bench.faults.chance import Chance
from colonnade.bench.faults.jobs import METHODS, STAGED, make_job
from colonnade.bench.faults.network import FAIR, Weather
from colonnade.methods.job import Job

_SALTS = 3  # a few jobs of each kind: what they come to without faults is computed once


@dataclass(frozen=True, slots=True)
class Ask:
    """A job, and when the operator asks for it or thinks better of it."""

    job: Job
    at: float
    cancelled_at: float | None = None


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """One simulation.

    Parameters
    ----------
    cap
        Of every account of every ledger, in units.
    dies
        Chance that a party's process dies at a write, a sync or a draw of noise.
    short
        Whether jobs give up on parties that are away for long; else they wait for ever.
    ordered
        Whether streams deliver in order, as they do. If not a task may come before its proposal,
        and a job may end of that.
    hub_dies
        Chance that the coordinator's process dies just before, or just after, a commit.
    trouble_s
        Mean time between troubles from outside: kills, power cuts, clocks that jump.
    horizon_s
        When all faults end: from then on everything must come to its end.
    start
        Where an earlier job has ended, if this begins there.
    """

    seed: int
    method: str
    names: tuple[str, ...]
    asks: tuple[Ask, ...]
    cap: int
    short: bool = False
    ordered: bool = True
    dies: float = 0.0
    hub_dies: float = 0.0
    trouble_s: float = 0.0
    horizon_s: float = 0.0
    weather: Weather = FAIR
    start: Start | None = None

    @property
    def affordable(self) -> bool:
        """Whether all jobs fit under the cap of every party."""
        if self.start is not None:
            return True  # it leaves enough for what follows
        prices = [
            sum(ask.job.max_units(name) for ask in self.asks if name in _names(ask.job))
            for name in self.names
        ]
        return max(prices) <= self.cap

    @property
    def may_fail(self) -> bool:
        """Whether a job may end without a model, or go on without some clients, by design."""
        return self.short or not self.ordered or not self.affordable

    def alone(self, job: Job) -> "SimulationPlan":
        """Return a plan of one of the jobs without faults."""
        calm = replace(self, dies=0.0, hub_dies=0.0, trouble_s=0.0, horizon_s=0.0, weather=FAIR)
        cap = 2 * price(job) if self.start is None else self.cap
        return replace(calm, seed=0, asks=(Ask(job, 0.0),), cap=cap, short=False)


def plan_of(
    seed: int,
    organizations: Organizations,
    *,
    method: str | None = None,
    small: bool = False,
    start_of: Callable[[str, tuple[str, ...]], Start],
) -> SimulationPlan:
    """Draw a plan; a ``small`` one has two parties, one job, and little time for faults."""
    chance = Chance(seed, 0)
    method = method or METHODS[seed % len(METHODS)]
    names = NAMES[: 2 if small else chance.one_of((2, 2, 3))]
    short, ordered = chance.happens(0.15), chance.happens(0.8)
    count = 1 if small else chance.one_of((1, 2, 3))
    horizon = chance.between(5.0, 20.0) if small else chance.between(20.0, 120.0)
    start = start_of(method, names) if method in STAGED else None
    asks = []
    for salt in chance.some_of(count, _SALTS):
        job = make_job(organizations, method, names, salt=salt, short=short, start=start)
        cancelled = chance.between(0.0, horizon) if chance.happens(0.1) else None
        asks.append(Ask(job, chance.between(0.0, horizon / 4), cancelled))
    share = chance.one_of((1.5, 2.5, 3.0, 3.0))  # under 3 three jobs do not all fit
    harsh = chance.one_of((0.3, 1.0, 2.0))
    return SimulationPlan(
        seed,
        method,
        names,
        tuple(asks),
        int(share * price(asks[0].job)) if start is None else start.cap,
        short,
        ordered,
        dies=(0.005 if small else 0.002) * harsh,
        hub_dies=(0.02 if small else 0.01) * harsh,
        trouble_s=(4.0 if small else 10.0) / harsh,
        horizon_s=horizon,
        weather=Weather(
            loss=0.02 * harsh,
            twice=0.05 * harsh,
            overtakes=0.0 if ordered else 0.05 * harsh,
            slow=0.02 * harsh,
            delay_s=chance.one_of((0.05, 0.3, 1.0)),
        ),
        start=start,
    )


def price(job: Job) -> int:
    """Return the most that a job can cost anyone."""
    return max(job.max_units(name) for name in _names(job))


def _names(job: Job) -> list[str]:
    return [member.party for member in job.members]
