"""Frank-Wolfe and moments side by side: accuracy, bytes and time at the same price.

Nothing comes from the data for free. Columns are declared within ten standard deviations, or as a
public table's quantities allow; tighter bounds are bought with a part of the budget, by the shipped
releases, and charged to every method alike; where they would cost too much the declared ones stand.
Radii, rounds and all else are the planner's, which is told nothing of correlations. The seeds were
not used to choose its rules; the public tables were seen while they were chosen.
"""

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from colonnade.bench.scratch import say
from colonnade.bench.vertical.tables import TABLES, read, split_evenly
from colonnade.core.arrays import AnyArray, FloatArray, Int32Array
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds, quantise
from colonnade.methods.bounds import STEPS, QuantilePlan, count_at_most, tight_bounds
from colonnade.methods.choice import choose_method
from colonnade.methods.frank_wolfe import plan as frank_wolfe
from colonnade.methods.moments import plan as moments
from colonnade.methods.problem import Loss, Problem
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.sampling import NoiseSource
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import make
from colonnade.simulate.evaluation.references import central_reference
from colonnade.simulate.inprocess import moments as moments_inprocess
from colonnade.simulate.inprocess import vertical as inprocess
from colonnade.simulate.inprocess.vertical import Data, ScaledModel, quality

T = TypeVar("T")
EPSILON, DELTA = 1.0, 1e-6
FIRST_SEED = 8000
PARTIES = 4
# Shapes of made-up tables and their correlation.
SHAPES = {"equicorrelated": 0.3, "factors": 0.5, "ar": 0.6, "independent": 0.0}
_DECLARED = Bounds(-10.0, 10.0)  # standard deviations: what somebody who knows little would declare
# Part of the budget for bounds, and the most of it that they may take before they are left alone.
_BOUNDS_PART, _MAX_BOUNDS_PART = 0.05, 0.25


@dataclass(frozen=True, slots=True)
class Raw:
    """A table in its own units, with declared bounds."""

    columns: Sequence[FloatArray]
    bounds: Sequence[Bounds]
    label: FloatArray
    label_bounds: Bounds
    splits: tuple[tuple[int, ...], ...]

    def part(self, rows: AnyArray) -> "Raw":
        """Return some of the rows."""
        columns = [column[rows] for column in self.columns]
        return replace(self, columns=columns, label=self.label[rows])


@dataclass(frozen=True, slots=True)
class Case(Generic[T]):
    """One line of a table of figures: data by seed, and what a planner is told of it."""

    name: str
    loss: Loss
    data: Callable[[int], T]
    correlation: float | None = None  # between columns of different parties, if it is known

    @property
    def metric(self) -> str:
        """What its models are judged by."""
        return "auc" if self.loss is Loss.LOGISTIC else "r2"


@dataclass(frozen=True, slots=True)
class JobRun:
    """What one job did."""

    score: float
    payload_bytes: int
    seconds: float


def methods(quick: bool, folder: Path | None) -> list[dict[str, object]]:
    """Return one row a case: medians over seeds, and what was sent and how long it took.

    ``folder`` holds the public tables; without it only made-up data is used.
    """
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if quick else 11))
    rows = []
    for case in _cases(quick, folder):
        say(f"methods: {case.name}")
        rows.append(_row(case, seeds, both_labels=not quick))
    return rows


def _cases(quick: bool, folder: Path | None) -> Iterator[Case[Raw]]:
    for features in (40,) if quick else (40, 400):
        for shape in ("equicorrelated",) if quick else SHAPES:
            made = functools.partial(made_table, shape, features)
            yield Case(f"{shape} d={features}", Loss.SQUARED, made)
    for name, table in TABLES.items():
        if folder is not None and (name == "california" or not quick):
            yield Case(name, table.loss, functools.partial(the_same, public_table(folder, name)))


def made_table(shape: str, features: int, seed: int, *, rows: int = 100_000) -> Raw:
    """Make a table whose columns are declared within ten standard deviations."""
    each = features // PARTIES
    made = make(
        rows,
        (each,) * PARTIES,
        informative=6,
        correlation=SHAPES[shape],
        seed=seed,
        structure=shape,
    )
    return Raw(list(made.columns), [_DECLARED] * features, made.label, _DECLARED, made.splits)


@functools.lru_cache(maxsize=2)
def public_table(folder: Path, name: str) -> Raw:
    """Read a public table and split its columns over parties in order."""
    columns, bounds, label, label_bounds = read(folder, name)
    return Raw(columns, bounds, label, label_bounds, split_evenly(len(columns), PARTIES))


def the_same(data: T, _seed: int) -> T:
    """Return a table that does not depend on the seed."""
    return data


def _row(case: Case[Raw], seeds: Sequence[int], *, both_labels: bool) -> dict[str, object]:
    runs: dict[str, list[JobRun]] = {}
    part, central, chosen = 0.0, [], ""
    for seed in seeds:
        raw, total = case.data(seed), units_down(rho_of(EPSILON, DELTA))
        data, paid = with_bounds(raw, total, SeededNoise(seed), label=case.loss is Loss.SQUARED)
        part, left = paid / total, total - paid
        reference = central_reference(data, loss=case.loss, rho_units=left, seed=seed)
        central.append(quality(data, reference, case.loss))
        for owner in (None, "p0") if both_labels else (None,):
            problem = problem_of(data, left, case.loss, owner)
            chosen = chosen or choose_method(problem)
            for name, run in _jobs(problem, data, seed):
                runs.setdefault(name, []).append(run)
    found: dict[str, Any] = {
        "case": case.name,
        "metric": case.metric,
        "seeds": len(seeds),
        "bounds_part": round(part, 4),
        "chosen": chosen,
        "central": _median(central),
    }
    for name in ("frank_wolfe", "moments"):
        plain = runs[name]
        found[name] = _median([run.score for run in plain])
        found[f"{name}_worst"] = round(min(run.score for run in plain), 3)
        sketched = [run.score for run in runs.get(f"{name}_sketched", ())]
        found[f"{name}_sketched"] = _median(sketched) if sketched else None
        found[f"{name}_bytes"] = round(statistics.median(run.payload_bytes for run in plain))
        found[f"{name}_s"] = round(statistics.median(run.seconds for run in plain), 3)
    return found


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 3)


def problem_of(
    data: Data,
    units: int,
    loss: Loss,
    owner: str | None = None,
    *,
    correlation: float | None = None,
) -> Problem:
    """Return what a planner is told."""
    return Problem(
        n_rows=data.label.size,
        features={f"p{k}": [f"x{i}" for i in split] for k, split in enumerate(data.splits)},
        rho_units=units,
        label_owner=owner,
        loss=loss,
        correlation=correlation,
    )


def _jobs(problem: Problem, data: Data, seed: int) -> Iterator[tuple[str, JobRun]]:
    """Run both jobs, in one process: the shipped steps of both sides, ledgers in memory."""
    ending = "_sketched" if problem.sketched else ""
    job = f"methods {seed}"

    first = frank_wolfe.recommend(problem).spec
    begun = time.perf_counter()
    iterate, walkers = inprocess.run(data, first, SeededNoise(seed), job=job)
    model = inprocess.model_of(first, iterate)
    yield f"frank_wolfe{ending}", _run(problem, data, model, walkers, begun)

    second = moments.recommend(problem).spec
    begun = time.perf_counter()
    state, members = moments_inprocess.run(data, second, SeededNoise(seed), job=job)
    model = moments_inprocess.model_of(second, state)
    yield f"moments{ending}", _run(problem, data, model, members, begun)


def _run(
    problem: Problem, data: Data, model: ScaledModel, members: dict[str, Any], begun: float
) -> JobRun:
    seconds = time.perf_counter() - begun
    return JobRun(quality(data, model, problem.loss), sum(sent_bytes(members).values()), seconds)


def sent_bytes(members: Mapping[str, Any]) -> dict[str, int]:
    """Return what each party of a job in one process has sent."""
    return {
        name: sum(kept.body_bytes for kept in member.ledger.state.stored.values())
        for name, member in members.items()
    }


def with_bounds(raw: Raw, units: int, noise: NoiseSource, *, label: bool) -> tuple[Data, int]:
    """Return the table under bought bounds and what all parties paid for them, in units."""
    bounds, label_bounds, paid = bounds_for(raw, units, noise, label=label)
    return on_grid(raw, bounds, label_bounds), paid


def on_grid(raw: Raw, bounds: Sequence[Bounds], label_bounds: Bounds) -> Data:
    """Put a table on the grid of its bounds."""
    columns = [quantise(c, b, grid=GRID) for c, b in zip(raw.columns, bounds, strict=True)]
    return Data(np.stack(columns), quantise(raw.label, label_bounds, grid=GRID), raw.splits)


def bounds_for(
    raw: Raw, units: int, noise: NoiseSource, *, label: bool
) -> tuple[list[Bounds], Bounds, int]:
    """Return bought bounds, the label's, and what all parties paid for them, in units.

    The first party buys the label's too, if ``label``. Prices follow from public counts alone.
    """
    n_rows = raw.label.size
    plans = [
        QuantilePlan(len(split) + (label and place == 0), n_rows)
        for place, split in enumerate(raw.splits)
    ]
    usual = int(_BOUNDS_PART * units) // len(plans)
    prices = [max(usual, plan.least_units) for plan in plans]
    bounds, label_bounds, paid = list(raw.bounds), raw.label_bounds, 0
    if sum(prices) <= _MAX_BOUNDS_PART * units:
        for place, (split, plan, price) in enumerate(zip(raw.splits, plans, prices, strict=True)):
            own = [raw.columns[i] for i in split]
            declared = [raw.bounds[i] for i in split]
            if label and place == 0:
                own, declared = [*own, raw.label], [*declared, raw.label_bounds]
            tight, cost = bought_bounds(own, declared, plan, price, noise)
            paid += cost
            for i, found in zip(split, tight, strict=False):  # the label comes after the features
                bounds[i] = found
            if label and place == 0:
                label_bounds = tight[-1]
    return bounds, label_bounds, paid


def bought_bounds(
    columns: Sequence[FloatArray],
    declared: Sequence[Bounds],
    plan: QuantilePlan,
    price: int,
    noise: NoiseSource,
) -> tuple[tuple[Bounds, ...], int]:
    """Find bounds by the releases that a party makes, with seeded noise."""
    fine: Int32Array = np.stack(
        [quantise(c, b, grid=FINE_GRID) for c, b in zip(columns, declared, strict=True)]
    )
    mechanism, bodies = plan.mechanism(price), list[bytes]()
    for _ in range(STEPS):
        counts = count_at_most(fine, plan.thresholds(bodies))
        bodies.append(plan.encode(mechanism.perturb(counts.ravel(), noise)))
    return tight_bounds(declared, plan, bodies, mechanism.sigma2), plan.price(mechanism)
