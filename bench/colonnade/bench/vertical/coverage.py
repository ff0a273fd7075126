"""How often a moments job's 95 % intervals cover what least squares finds in the joined table.

Coefficients that made the label and those that did not are counted apart: errors of a Gram matrix
act through coefficients, so that intervals may be right on average and wrong for the ones that
matter. A wide party keeps some of its features; least squares is then on those that were kept. The
shares that parties' columns explain, alone and without each, are compared with those of the same
models on the joined table; odds ratios with those of logistic regression. The seeds were not used
to choose any rule.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.bench.scratch import say
from colonnade.bench.vertical.methods import DELTA, EPSILON, PARTIES, SHAPES, problem_of
from colonnade.core.arrays import FloatArray, Int16Array
from colonnade.core.fixedpoint import GRID
from colonnade.methods.moments.plan import recommend
from colonnade.methods.moments.solver.contribution import (
    intervals_of,
    models_of,
    moments_contribution,
    odds_ratios,
)
from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.problem import Loss
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.report.text import NORMAL_95
from colonnade.simulate.data.synthetic import Synthetic, make
from colonnade.simulate.inprocess.moments import run

_FIRST_SEED = 9000
_INFORMATIVE = 6
_NEWTON_STEPS = 12


@dataclass(frozen=True, slots=True)
class CoveredIntervals:
    """Which intervals of one job cover, and which coefficients made the label."""

    inside: NDArray[np.bool_]
    nonzero: NDArray[np.bool_]
    error: FloatArray  # standard errors that the job gives
    score: FloatArray  # what it is off by, over its standard errors
    shares: NDArray[np.bool_]  # of the shares of parties alone and of all but each
    odds: NDArray[np.bool_]  # of the odds ratios of classes; none for other labels


def coverage(quick: bool) -> list[dict[str, object]]:
    """Return one row a case: coverage of coefficients that are zero and of those that are not."""
    rows: list[dict[str, object]] = []
    for shape, features, owner, loss, count in _cases(quick):
        name = f"{shape} d={features}" + (" classes" if loss is Loss.LOGISTIC else "")
        labels = "shared" if owner is None else "one party's"
        say(f"intervals: {name}, {labels} labels")
        seeds = range(_FIRST_SEED, _FIRST_SEED + count)
        jobs = [covered(made(shape, features, seed, loss), seed, owner=owner) for seed in seeds]
        rows.append({"case": name, "labels": labels, "seeds": count, **_row(jobs)})
    return rows


def _cases(quick: bool) -> Iterator[tuple[str, int, str | None, Loss, int]]:
    for features, count in ((40, 2),) if quick else ((40, 40), (400, 10)):
        for owner in (None, "p0"):
            for shape in ("ar",) if quick else SHAPES:
                yield shape, features, owner, Loss.SQUARED, count
    for owner in (None, "p0"):
        for shape in ("ar",) if quick else SHAPES:
            yield shape, 40, owner, Loss.LOGISTIC, 2 if quick else 20


def made(shape: str, features: int, seed: int, loss: Loss = Loss.SQUARED) -> Synthetic:
    """Return a made-up table of 100,000 rows at four parties."""
    splits = (features // PARTIES,) * PARTIES
    return make(
        100_000,
        splits,
        informative=_INFORMATIVE,
        correlation=SHAPES[shape],
        seed=seed,
        structure=shape,
        loss=loss,
    )


def covered(
    table: Synthetic, seed: int, *, owner: str | None = None, shares: bool = True
) -> CoveredIntervals:
    """Run a moments job and compare its intervals with least squares on the table as it saw it.

    Without ``shares`` those of parties are left out: they take as long as the job.
    """
    data = table.data()
    problem = problem_of(data, units_down(rho_of(EPSILON, DELTA)), table.loss, owner)
    spec, job = recommend(problem).spec, f"intervals {seed}"
    state, _ = run(data, spec, SeededNoise(seed), job=job)
    solver = MomentsSolver(spec, job)
    kept = [
        split[place]
        for part, split in zip(spec.parts, data.splits, strict=True)
        for place in solver.kept(state, part)
    ]
    exact = np.asarray(np.corrcoef(np.vstack([data.columns[kept], data.label]) / GRID))
    truth = np.linalg.solve(exact[:-1, :-1], exact[:-1, -1])
    found, odds = intervals_of(solver, state), np.zeros(0, bool)
    inside = (found.low <= truth) & (truth <= found.high)
    score = (found.coef - truth) / found.error
    if table.loss is Loss.LOGISTIC:
        ratios = odds_ratios(solver, state, found)
        true = np.exp(log_odds(data.columns[kept], data.label > 0))
        odds = (ratios["odds_low"] <= true) & (true <= ratios["odds_high"])
    known = shares_covered(solver, state, exact) if shares else np.zeros(0, bool)
    return CoveredIntervals(inside, table.coef[kept] != 0.0, found.error, score, known, odds)


def shares_covered(
    solver: MomentsSolver, state: MomentsState, exact: FloatArray
) -> NDArray[np.bool_]:
    """Return which 95 % intervals of parties' shares cover those of the same models.

    ``exact`` are the correlations of the kept features and, last, the label. What the releases do
    not tell is left out.
    """
    gram, target = exact[:-1, :-1], exact[:-1, -1]
    models, told = models_of(solver, state), moments_contribution(solver, state)
    if told is None:
        return np.zeros(0, bool)
    covers = []
    for party, each in models.items():
        for name, coef in (("alone", each.alone), ("without", each.without)):
            variance, product = float(coef @ gram @ coef), float(target @ coef)
            true = 2.0 * product - variance
            if solver.spec.loss is Loss.LOGISTIC:
                true = product**2 / max(variance, 1e-12)
            found = told[party]
            if found[name] is None:
                continue
            covers.append(abs(found[name] - true) <= NORMAL_95 * found[f"{name}_error"])
    return np.array(covers)


def log_odds(columns: Int16Array, positive: NDArray[np.bool_]) -> FloatArray:
    """Return what logistic regression finds for one deviation more of each column."""
    rows = columns / float(GRID)
    rows = (rows - rows.mean(axis=1)[:, None]) / rows.std(axis=1)[:, None]
    rows = np.vstack([rows, np.ones(rows.shape[1])])
    coef = np.zeros(len(rows))
    for _ in range(_NEWTON_STEPS):
        chance = 1.0 / (1.0 + np.exp(-(coef @ rows)))
        curve = (rows * (chance * (1.0 - chance))) @ rows.T
        coef = coef + np.linalg.solve(curve, rows @ (positive - chance))
    return coef[:-1].astype(np.float64)


def _row(jobs: Sequence[CoveredIntervals]) -> dict[str, float | None]:
    inside = np.concatenate([job.inside for job in jobs])
    nonzero = np.concatenate([job.nonzero for job in jobs])
    found: dict[str, float | None] = {
        "nonzero": round(float(inside[nonzero].mean()), 3),
        "zero": round(float(inside[~nonzero].mean()), 3),
        "error": round(statistics.median(float(np.median(job.error)) for job in jobs), 3),
    }
    for name, covers in (("shares", [j.shares for j in jobs]), ("odds", [j.odds for j in jobs])):
        known = np.concatenate(covers)
        found[name] = round(float(known.mean()), 3) if known.size else None
    return found
