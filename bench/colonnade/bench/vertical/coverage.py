"""How often a moments job's 95 % intervals cover what least squares finds in the joined table.

Coefficients that made the label and those that did not are counted apart: errors of a Gram matrix
act through coefficients, so that intervals may be right on average and wrong for the ones that
matter. A wide party keeps some of its features; least squares is then on those that were kept. The
seeds were not used to choose any rule.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.bench.vertical.methods import DELTA, EPSILON, PARTIES, SHAPES
from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID
from colonnade.methods.moments.plan import recommend
from colonnade.methods.moments.solver.steps import MomentsSolver
from colonnade.methods.problem import Problem
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import Synthetic, make
from colonnade.simulate.inprocess.moments import run

Progress = Callable[[str], None]

_FIRST_SEED = 9000
_INFORMATIVE = 6


@dataclass(frozen=True, slots=True)
class Covered:
    """Which intervals of one job cover, and which coefficients made the label."""

    inside: NDArray[np.bool_]
    nonzero: NDArray[np.bool_]
    error: FloatArray  # standard errors that the job gives
    score: FloatArray  # what it is off by, over its standard errors


def coverage(quick: bool, progress: Progress) -> list[dict[str, object]]:
    """Return one row a case: coverage of coefficients that are zero and of those that are not."""
    rows = []
    for shape, features, owner, count in _cases(quick):
        name = f"{shape} d={features}"
        labels = "shared" if owner is None else "one party's"
        progress(f"intervals: {name}, {labels} labels")
        seeds = range(_FIRST_SEED, _FIRST_SEED + count)
        jobs = [covered(made(shape, features, seed), seed, owner=owner) for seed in seeds]
        rows.append({"case": name, "labels": labels, "seeds": count, **_row(jobs)})
    return rows


def _cases(quick: bool) -> Iterator[tuple[str, int, str | None, int]]:
    for features, count in ((40, 2),) if quick else ((40, 40), (400, 10)):
        for owner in (None, "p0"):
            for shape in ("ar",) if quick else SHAPES:
                yield shape, features, owner, count


def made(shape: str, features: int, seed: int) -> Synthetic:
    """Return a made-up table of 100,000 rows at four parties."""
    splits = (features // PARTIES,) * PARTIES
    return make(
        100_000,
        splits,
        informative=_INFORMATIVE,
        correlation=SHAPES[shape],
        seed=seed,
        structure=shape,
    )


def covered(table: Synthetic, seed: int, *, owner: str | None = None) -> Covered:
    """Run a moments job and compare its intervals with least squares on the table as it saw it."""
    data = table.data()
    problem = Problem(
        n_rows=data.label.size,
        features={f"p{k}": [f"x{i}" for i in split] for k, split in enumerate(data.splits)},
        rho_units=units_down(rho_of(EPSILON, DELTA)),
        label_owner=owner,
    )
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
    found = solver.intervals(state)
    inside = (found.low <= truth) & (truth <= found.high)
    score = (found.coef - truth) / found.error
    return Covered(inside, table.coef[kept] != 0.0, found.error, score)


def _row(jobs: Sequence[Covered]) -> dict[str, float]:
    inside = np.concatenate([job.inside for job in jobs])
    nonzero = np.concatenate([job.nonzero for job in jobs])
    return {
        "nonzero": round(float(inside[nonzero].mean()), 3),
        "zero": round(float(inside[~nonzero].mean()), 3),
        "error": round(statistics.median(float(np.median(job.error)) for job in jobs), 3),
    }
