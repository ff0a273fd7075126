"""What each party's columns explain, as a sealed job's products tell."""

from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.linear.explained import VarianceShares, party_models
from colonnade.methods.moments.solver.contribution import share_values
from colonnade.methods.moments.solver.scales import Scales
from colonnade.methods.problem import Loss
from colonnade.methods.sealed.solver.steps import SealedSolver, SealedState, solved


def sealed_contribution(solver: SealedSolver, state: SealedState) -> dict[str, Any] | None:
    """Return each party's contribution as JSON values; None before the rounds are over."""
    if not solver.finished(state):
        return None
    spec, found = solver.spec, solver.estimate(state)
    classes = spec.loss is Loss.LOGISTIC
    shares = VarianceShares(found.gram, found.target, found.errors[:-1] ** 2, found.errors[-1] ** 2)

    def solve(places: IntArray) -> FloatArray:
        gram, target = found.gram[np.ix_(places, places)], found.target[places]
        return solved(spec, gram, target, found.error)

    def fitted(model: FloatArray) -> FloatArray:
        return shares.fitted(model) if classes else model

    spans, first = {}, 0
    for part in spec.parts:
        last = first + len(solver.kept(state, part))
        spans[part.party], first = slice(first, last), last
    mean = Scales.of(spec, state.bodies).label_mean
    rate = min(max((1.0 + mean) / 2.0, 1e-4), 1.0 - 1e-4) if classes else None
    whole = fitted(solve(np.arange(first)))
    return {
        party: share_values("alone", shares.of(fitted(models.alone)), rate)
        | share_values("without", shares.of(fitted(models.without)), rate)
        | share_values("lost", shares.lost(whole, fitted(models.without)), None)
        for party, models in party_models(first, spans, solve).items()
    }
