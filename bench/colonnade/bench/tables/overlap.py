"""What absent people cost a moments job: its R2 where parties have a random part of everybody.

Every party has each person with the same chance, on its own; rows are those of people whom at least
one party has, and how many two parties have in common is told as an alignment tells it. Models are
scored on everybody. The noise is that of the real mechanisms, drawn from a seed. The seeds were not
used to choose any rule.
"""

import itertools
import statistics
from dataclasses import replace

import numpy as np

from colonnade.bench.vertical.methods import problem_of
from colonnade.core.fixedpoint import GRID
from colonnade.methods.moments.plan import recommend
from colonnade.methods.problem import DEFAULT_CORRELATION, Loss, Problem
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import make
from colonnade.simulate.inprocess.moments import fit
from colonnade.simulate.inprocess.vertical import Data, quality

EPSILON, DELTA = 1.0, 1e-6
_ROWS = 100_000
_SPLITS = (8, 8, 7, 7)  # as `colonnade simulate` deals 30 features out to 4 parties
_FIRST_SEED = 9100
_QUICK, _FULL = (0.5,), (0.9, 0.7, 0.5, 0.3)


def rows(quick: bool) -> list[dict[str, object]]:
    """Return one row a presence: medians over seeds of R2, beside that of complete tables."""
    seeds = range(_FIRST_SEED, _FIRST_SEED + (3 if quick else 9))
    tables = {seed: _made(seed) for seed in seeds}
    complete = statistics.median(overlap_r2(data, 1.0, seed=seed) for seed, data in tables.items())
    found: list[dict[str, object]] = []
    for presence in _QUICK if quick else _FULL:
        scores = [overlap_r2(data, presence, seed=seed) for seed, data in tables.items()]
        found.append(
            {
                "presence": presence,
                "r2": round(statistics.median(scores), 3),
                "r2_complete": round(complete, 3),
            }
        )
    return found


def overlap_r2(data: Data, presence: float, *, seed: int) -> float:
    """Return the R2 of a job whose parties have each person with the chance ``presence``."""
    noise = SeededNoise(seed + 1)
    features = {f"p{place}": [f"x{at}" for at in split] for place, split in enumerate(data.splits)}
    units = units_down(rho_of(EPSILON, DELTA))
    if presence == 1.0:
        plan = recommend(problem_of(data, units, Loss.SQUARED))
        return quality(data, fit(data, plan.spec, noise), Loss.SQUARED)
    draw = np.random.default_rng([seed, 5])
    has = draw.random((len(features), data.label.size)) < presence
    people = {
        tuple(f"p{place}" for place in group): int(has[list(group)].all(axis=0).sum())
        for size in (1, 2)
        for group in itertools.combinations(range(len(features)), size)
    }
    somewhere = has.any(axis=0)
    aligned = replace(
        data,
        columns=np.ascontiguousarray(data.columns[:, somewhere]),
        label=data.label[somewhere],
        presence=tuple((each[somewhere] * GRID).astype(np.int16) for each in has),
    )
    problem = Problem(int(somewhere.sum()), features, units, presence=True, people=people)
    return quality(data, fit(aligned, recommend(problem).spec, noise), Loss.SQUARED)


def _made(seed: int) -> Data:
    correlation = DEFAULT_CORRELATION
    return make(_ROWS, _SPLITS, informative=6, correlation=correlation, seed=seed).data()
