"""From options and public numbers to a method's specification."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from colonnade.client.options import AdmmOptions, JobOptions
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput
from colonnade.methods.base import MethodPlan
from colonnade.methods.choice import choose_method
from colonnade.methods.holdout import MAX_HOLDOUT, PARTS
from colonnade.methods.problem import Loss, Problem
from colonnade.methods.registry import kinds, method_of
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.privacy.accounting import delta_for, rho_of, units_down

_USUAL_HOLDOUT = 200
# Least and most of what is counted.
_COUNTS = {
    "sketch_dim": (1, 2**31 - 1),
    "directions": (1, 10**4),
    "keep_features": (1, 10**6),
    "buckets": (64, 2**22),
    "rounds": (1, 10**6),
    "shares": (0, 10**6),
    "parties_per_round": (1, 256),
    "features_per_round": (0, 10**6),
}
_CHOICES = {
    "scope": ("joint", "party"),
    "sampling": ("all", "serial", "nice"),
    "exchange": (None, "sketched", "sealed"),
}
LOSS_NAMES = ("squared", "logistic")


def delta_of(options: JobOptions | AdmmOptions, population: int | None = None) -> float:
    """Return the delta that was asked for, or the default for so many records or clients."""
    try:
        return delta_for(options.delta, population)
    except ValueError as error:
        raise BadArgument("delta", str(error).removeprefix("delta ")) from None


def budget_of(options: JobOptions, *, n_rows: int, n_parties: int) -> int:
    """Return what the job may cost all parties together, in units."""
    check_choices(options, {**_CHOICES, "loss": LOSS_NAMES})
    if not 0.0 < options.epsilon < 1000.0:
        raise BadArgument("epsilon", "must lie above 0 and below 1000")
    units = units_down(rho_of(options.epsilon, delta_of(options, n_rows)))
    left = units - evaluation_units(options, n_rows)
    if left <= 0:
        raise BadArgument("evaluate", "must leave some of epsilon to the fit")
    return left * (n_parties if options.scope == "party" else 1)


def evaluation_units(options: JobOptions, n_rows: int) -> int:
    """Return what of the budget is left for an evaluation, in units."""
    if options.evaluate is None:
        return 0
    if not 0.0 < options.evaluate < 1000.0:
        raise BadArgument("evaluate", "must lie between 0 and epsilon")
    return units_down(rho_of(options.evaluate, delta_of(options, n_rows)))


def holdout_of(options: JobOptions) -> int:
    """Return how many of a thousand people are held out of the fit."""
    part = options.keep_out
    if part is None:
        return 0 if options.evaluate is None else _USUAL_HOLDOUT
    if not 0.0 <= part <= MAX_HOLDOUT / PARTS or (options.evaluate and round(PARTS * part) < 1):
        raise BadArgument("keep_out", f"must lie between 0 and {MAX_HOLDOUT / PARTS:g}")
    return round(PARTS * part)


def plan_of(
    options: JobOptions,
    features: Mapping[str, Sequence[str]],
    *,
    n_rows: int,
    units: int,
    owner: str | None,
    groups: Mapping[str, Sequence[str]] | None = None,
    presence: bool = False,
    people: Mapping[tuple[str, ...], int] | None = None,
    sealed: bool = False,
    shields: Mapping[str, int] | None = None,
) -> MethodPlan[Any]:
    """Return the recommended plan, with what was asked for in its place.

    ``owner`` alone holds the label, or with None every party does. With the scope ``party`` none
    may pay more than its part of ``units``: one that has more to release (the label) would, so the
    whole plan is made smaller until it does not. ``groups`` are those of the features, by party;
    ``presence`` says that tables know whom a party has, and ``people`` how many people one party or
    two have, where an alignment counted. ``sealed`` says that all parties' policies grant products
    under encryption: without it a plan has none unless the options ask for them. ``shields`` are
    what policies ask of rows in such products, by party, in units.
    """
    for name, (least, most) in _COUNTS.items():
        count = getattr(options, name)
        if count is not None and not least <= count <= most:
            raise BadArgument(name, f"must lie between {least} and {most}")
    try:
        problem = Problem(
            n_rows=n_rows,
            features=features,
            rho_units=units,
            label_owner=owner,
            loss=Loss(options.loss),
            correlation=options.correlation,
            groups=groups or {},
            presence=presence,
            people=people or {},
            shields=shields or {},
        )
        for _ in range(50):
            plan = _planned(options, problem, sealed=sealed)
            costliest = max(plan.spec.max_units(party) for party in features)
            if options.scope == "joint" or costliest * len(features) <= units:
                return plan
            less = problem.rho_units * units // (costliest * len(features) + 1)
            problem = replace(problem, rho_units=less)
    except ValueError as error:
        raise BadInput(f"no such plan: {error}") from None
    raise BadArgument("scope", "must be joint: no plan keeps every party within its epsilon")


def _planned(options: JobOptions, problem: Problem, *, sealed: bool) -> MethodPlan[Any]:
    """Return a plan within the budget; `ValueError` if there is none."""
    kind = _kind(options, problem, sealed=sealed)
    if (plan := method_of(kind).plan) is None:
        raise BadInput(f"jobs of kind {kind} are not planned from columns")
    try:
        return plan(problem, options)
    except ValueError:
        if kind != SealedSpec.kind or options.exchange or options.method:
            raise
        # Granted, but no such plan fits, and nobody asked for it.
        other = method_of(choose_method(problem)).plan
        return plan(problem, options) if other is None else other(problem, options)


def _kind(options: JobOptions, problem: Problem, *, sealed: bool) -> str:
    """Return the method that was asked for by name or by its options, or the better one."""
    own = {kind: options.given(method_of(kind).options) for kind in kinds()}
    asked = [kind for kind, given in own.items() if given and kind != SealedSpec.kind]
    kind = options.method or (asked[0] if asked else choose_method(problem))
    if options.exchange == "sealed" or (
        sealed and problem.sketched and options.exchange is None and not (options.method or asked)
    ):
        kind = SealedSpec.kind
    _check_exchange(options, kind, problem)
    others = [name for other in asked if other != kind for name in own[other]]
    if others := [name for name in others if name not in method_of(kind).options]:
        raise BadArgument(others[0], f"is not an option of the method {kind}")
    return kind


def _check_exchange(options: JobOptions, kind: str, problem: Problem) -> None:
    """Refuse options that contradict each other about products under encryption."""
    sealed = kind == SealedSpec.kind
    if options.method not in (None, SealedSpec.kind) and sealed:
        raise BadArgument("exchange", f"must be sketched with the method {options.method}")
    if options.exchange == "sketched" and sealed:
        raise BadArgument("exchange", "must be sealed with the method sealed")
    if sealed and not problem.sketched:
        raise BadArgument("exchange", "must be sketched unless a label owner alone has the label")
    if options.buckets is not None and not sealed:
        raise BadArgument("buckets", "needs the exchange sealed")


def check_choices(
    options: JobOptions | AdmmOptions, choices: Mapping[str, Sequence[str | None]]
) -> None:
    """Refuse an option that is none of its choices, by its name."""
    for name, known in choices.items():
        if getattr(options, name) not in known:
            raise BadArgument(name, f"must be one of {', '.join(each for each in known if each)}")
