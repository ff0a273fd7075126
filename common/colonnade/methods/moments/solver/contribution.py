"""Contributions of parties' columns, and odds ratios, estimated from a moments job's releases."""

import math
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.linear.explained import Explained, PartyModels, VarianceShares, auc_of, party_models
from colonnade.linear.gram import within_ball
from colonnade.linear.intervals import Intervals
from colonnade.methods.moments.solver.directions import spans_of
from colonnade.methods.moments.solver.intervals import intervals
from colonnade.methods.moments.solver.people import people
from colonnade.methods.moments.solver.scales import Scales, told_deviations
from colonnade.methods.moments.solver.shares import shares_of, unclipped_shares
from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.problem import Loss

_DIGITS = 4
_MAX_SHARE = 0.85  # more is not believed of a model of classes


def intervals_of(solver: MomentsSolver, state: MomentsState, *, level: float = 0.95) -> Intervals:
    """Return unpenalised coefficients of all kept features with intervals.

    They are for one deviation of a column, as releases tell it: a narrow column beside wide ones is
    scaled by more than that.
    """
    spec, fewest = solver.spec, float(people(solver.spec, state.bodies).min())
    found = intervals(spec, *solver.known(state), n_rows=fewest, level=level)
    told = [
        told_deviations(spec, part, state.bodies)[:, solver.kept(state, part)]
        for part in spec.parts
    ]
    scale, doubt = np.concatenate(told, axis=1)
    return found.times(scale, doubt)


def shares_in(solver: MomentsSolver, state: MomentsState) -> tuple[VarianceShares, FloatArray]:
    """Return the estimated shares of variance that columns explain, and the coefficients."""
    spec, scales = solver.spec, Scales.of(solver.spec, state.bodies)
    coef = np.concatenate(solver.in_deviations(state, scales))
    raw, mean = shares_of(spec, *solver.known(state)), scales.label_mean
    return unclipped_shares(spec, state.bodies, raw, coef, label_mean=mean), coef


def explained(solver: MomentsSolver, state: MomentsState) -> Explained:
    """Return the share of the label's variance that the model explains, with its error."""
    shares, coef = shares_in(solver, state)
    return shares.of(shares.fitted(coef) if solver.spec.loss is Loss.LOGISTIC else coef)


def bought_between(solver: MomentsSolver) -> bool:
    """Return whether what parties have in common was measured, or there is but one party."""
    return solver.spec.shares() or len(solver.spec.parts) == 1


def models_of(solver: MomentsSolver, state: MomentsState) -> dict[str, PartyModels]:
    """Return what the job's penalty and ball give for each party's columns and for all others."""
    spec, found = solver.spec, solver.estimate(state)
    penalty = spec.penalty * found.error

    def solve(places: IntArray) -> FloatArray:
        gram, target = found.gram[np.ix_(places, places)], found.target[places]
        return within_ball(gram, target, spec.radius, l1=penalty)

    spans = spans_of([spec.kept(part) for part in spec.parts])
    names = [part.party for part in spec.parts]
    return party_models(len(found.target), dict(zip(names, spans, strict=True)), solve)


def moments_contribution(solver: MomentsSolver, state: MomentsState) -> dict[str, Any] | None:
    """Return each party's contribution as JSON values; None before the rounds are over.

    Where nothing was bought about what parties have in common, a party's own releases still tell
    what it explains alone, and of two parties each is all but the other. What more than one party
    explain together would rest on a guess: it is None.
    """
    if not solver.finished(state):
        return None
    classes = solver.spec.loss is Loss.LOGISTIC
    rate = positive_rate(solver, state) if classes else None
    shares, coef = shares_in(solver, state)

    def fitted(model: FloatArray) -> FloatArray:
        return shares.fitted(model) if classes else model

    return {
        party: share_values("alone", shares.of(fitted(models.alone)), rate)
        | _others(solver, shares, fitted(coef), fitted(models.without), rate)
        for party, models in models_of(solver, state).items()
    }


def _others(
    solver: MomentsSolver,
    shares: VarianceShares,
    whole: FloatArray,
    without: FloatArray,
    rate: float | None,
) -> dict[str, float | None]:
    """Return what all parties but one explain, where it is known."""
    found: dict[str, float | None] = {"without": None}
    if bought_between(solver) or len(solver.spec.parts) == 2:
        found = {**share_values("without", shares.of(without), rate)}
    if bought_between(solver):
        found |= share_values("lost", shares.lost(whole, without), None)
    return found


def share_values(name: str, found: Explained, rate: float | None) -> dict[str, float]:
    """Return a share, its error and, for classes of which ``rate`` are positive, its AUC."""
    values = {name: found.share, f"{name}_error": found.error}
    if rate is not None:
        ends = [auc_of(found.share + sign * found.error, rate) for sign in (-1.0, 1.0)]
        values[f"{name}_auc"] = auc_of(found.share, rate)
        values[f"{name}_auc_error"] = (ends[1] - ends[0]) / 2.0
    return {key: round(value, _DIGITS) for key, value in values.items()}


def positive_rate(solver: MomentsSolver, state: MomentsState) -> float:
    """Return the rate of the positive class, estimated from releases."""
    mean = Scales.of(solver.spec, state.bodies).label_mean
    return min(max((1.0 + mean) / 2.0, 1e-4), 1.0 - 1e-4)


def odds_ratios(
    solver: MomentsSolver, state: MomentsState, found: Intervals
) -> dict[str, FloatArray]:
    """Return odds ratios for one deviation more of each column, and their intervals.

    Least squares on two classes finds the discriminant's direction; its logit is the score times
    ``2 / (4 p q (1 - R2))`` (linear discriminant analysis, as in `methods.calibration`).
    The share's error moves the slope of all columns together and is added to each one's own.
    """
    rate, whole = positive_rate(solver, state), explained(solver, state)
    share = min(max(whole.share, 0.0), _MAX_SHARE)
    slope = 1.0 / (math.sqrt(rate * (1.0 - rate)) * (1.0 - share))
    doubt = whole.error / (1.0 - share)
    logit = slope * found.coef
    reach = np.hypot(slope * (found.high - found.low) / 2.0, 2.0 * doubt * np.abs(logit))
    return {
        "odds_ratio": np.exp(logit),
        "odds_low": np.exp(logit - reach),
        "odds_high": np.exp(logit + reach),
    }
