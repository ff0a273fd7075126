"""The accuracy to expect of a plan, from synthetic data of its shape."""

import statistics
from collections.abc import Callable
from typing import Any

from colonnade.methods.base import MethodPlan, MethodSpec
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.problem import Loss
from colonnade.methods.registry import method_of
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import make
from colonnade.simulate.evaluation.references import central_reference
from colonnade.simulate.inprocess import moments, sealed
from colonnade.simulate.inprocess import vertical as inprocess
from colonnade.simulate.inprocess.vertical import Data, ScaledModel, quality

# How a plan is run in one process, by its method.
_FITS: dict[str, Callable[..., ScaledModel]] = {
    FrankWolfeSpec.kind: inprocess.fit,
    MomentsSpec.kind: moments.fit,
    SealedSpec.kind: sealed.fit,
}

# Made-up rows, and values in all: enough for two digits in a few seconds.
_MAX_ROWS = 50_000
_MAX_VALUES = 6_000_000
_LEAST_ROWS = 1_000


def expected_accuracy(
    plan: MethodPlan[Any],
    *,
    informative: int = 6,
    noise: float = 0.5,
    seed: int = 0,
    seeds: int = 3,
) -> dict[str, object]:
    """Run the plan on synthetic tables and return its quality beside references.

    Fewer rows than the plan's are simulated when it is large. Prices are then raised so that noise
    stands in the same relation to signal: those of choices and sums by the square of the ratio of
    rows, those of sketches by the ratio. What is left out is the sampling error of the data.
    """
    problem, spec = plan.problem, plan.spec
    splits = [len(features) for features in problem.features.values()]
    fitting = max(_LEAST_ROWS, _MAX_VALUES // sum(splits))
    rows = min(spec.population, _MAX_ROWS, fitting)
    ratio = spec.population / rows
    scaled = _with_rows(spec, rows)
    found: dict[str, list[float]] = {"ours": [], "central": [], "nonprivate": []}
    for number in range(seeds):
        made = make(
            rows,
            splits,
            informative=min(informative, sum(splits)),
            correlation=problem.expected,
            noise=noise,
            seed=seed + number,
            loss=spec.loss,
        )
        data = made.data()
        ours = _fit(data, scaled, seed=seed + number)
        units = int(problem.rho_units * ratio**2)
        reference = central_reference(data, loss=spec.loss, rho_units=units, seed=seed + number)
        for name, model in (("ours", ours), ("central", reference), ("nonprivate", made.truth())):
            found[name].append(quality(data, model, spec.loss))
    return {
        "metric": "auc" if spec.loss is Loss.LOGISTIC else "r2",
        **{name: round(statistics.median(values), 3) for name, values in found.items()},
        "ours_range": [round(min(found["ours"]), 3), round(max(found["ours"]), 3)],
        "correlation": problem.expected,
        "rows_simulated": rows,
        "seeds": seeds,
    }


def _fit(data: Data, spec: MethodSpec, *, seed: int) -> ScaledModel:
    return _FITS[spec.kind](data, spec, SeededNoise(seed), job=f"expected {seed}")


def _with_rows(spec: MethodSpec, rows: int) -> MethodSpec:
    """Return the job on fewer rows, with noise in the same relation to signal."""
    if rows == spec.population or (scaled := method_of(spec.kind).with_rows) is None:
        return spec
    made: MethodSpec = scaled(spec, rows)
    return made
