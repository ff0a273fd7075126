"""More from a finished moments job: other penalties, whole paths, intervals, correlations.

Privacy: all of it is arithmetic on what was released, so none of it costs anything
(post-processing: Dwork and Roth 2014, Proposition 2.1).
"""

from dataclasses import replace
from typing import Any

from colonnade.core.errors import BadInput
from colonnade.linear.solutions import Wanted, gram_summary, intervals_summary, solution
from colonnade.methods.moments.solver.contribution import (
    bought_between,
    explained,
    intervals_of,
    odds_ratios,
    positive_rate,
    share_values,
)
from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.problem import Loss


def solved(solver: MomentsSolver, state: MomentsState, wanted: Wanted) -> MomentsState:
    """Return the state of a finished job with the coefficients that another penalty gives."""
    if not solver.finished(state):
        raise BadInput("the job's rounds are not over: there is no Gram matrix to solve yet")
    found = solver.estimate(state)
    x = solution(solver.spec, found.gram, found.target, error=found.error, wanted=wanted)
    coef, intercept = solver.scaled(state, x)
    return replace(state, coef=coef, intercept=intercept)


def moments_summary(
    solver: MomentsSolver, state: MomentsState, *, level: float = 0.95
) -> dict[str, Any] | None:
    """Return what a report shows of a moments job, as JSON values; None before its rounds are over.

    `colonnade.report` describes it. At most the 120 features that have most to do with the
    label are in it.
    """
    if not solver.finished(state):
        return None
    found = solver.estimate(state)
    names = [
        (part.party, part.features[place])
        for part in solver.spec.parts
        for place in solver.kept(state, part)
    ]
    chosen = solver.spec.penalty * found.error
    shown, section = gram_summary(names, found.gram, found.target, chosen=chosen)
    return section | {
        "intervals": _intervals(solver, state, shown, level),
        "explained": _explained(solver, state),
        "overlap": [
            {"parties": list(pair), "people": people}
            for pair, people in solver.spec.overlaps().items()
        ],
    }


def _intervals(
    solver: MomentsSolver, state: MomentsState, shown: Any, level: float
) -> dict[str, Any] | None:
    if not bought_between(solver):
        return None  # what parties have in common is a guess here, and so would its error be
    found = intervals_of(solver, state, level=level)
    classes = solver.spec.loss is Loss.LOGISTIC
    odds = odds_ratios(solver, state, found) if classes else {}
    return intervals_summary(found, shown, level=level, **odds)


def _explained(solver: MomentsSolver, state: MomentsState) -> dict[str, float] | None:
    if not bought_between(solver):
        return None
    classes = solver.spec.loss is Loss.LOGISTIC
    rate = positive_rate(solver, state) if classes else None
    found = share_values("share", explained(solver, state), rate)
    return {name.removeprefix("share_"): value for name, value in found.items()}
