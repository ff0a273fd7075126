"""From options and public numbers to a method's specification."""

from collections.abc import Mapping, Sequence

from colonnade.client.options import AdmmOptions, JobOptions
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput
from colonnade.linear.losses import LOSSES
from colonnade.linear.penalties import Penalty
from colonnade.methods.admm.plan import participations_of, release_units
from colonnade.methods.admm.spec import AdmmSpec, Sampling
from colonnade.methods.base import Plan
from colonnade.methods.choice import choose_method
from colonnade.methods.holdout import MAX_HOLDOUT, PARTS
from colonnade.methods.problem import Loss, Problem
from colonnade.methods.registry import kinds, method_of
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.privacy.accounting import delta_for, rho_of, units_down

REGULARISERS = ("none", "l1", "l2", "elastic-net", "box")
_USUAL_HOLDOUT = 200
_MAX_STRENGTH = 1e6  # far beyond what leaves any coefficient
_LEAST, _MOST = 2.0**-40, 2.0**40

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
_LOSSES = ("squared", "logistic")


def delta_of(options: JobOptions | AdmmOptions, population: int | None = None) -> float:
    """Return the delta that was asked for, or the default for so many records or clients."""
    try:
        return delta_for(options.delta, population)
    except ValueError as error:
        raise BadArgument("delta", str(error).removeprefix("delta ")) from None


def budget_of(options: JobOptions, *, n_rows: int, n_parties: int) -> int:
    """Return what the job may cost all parties together, in units."""
    _check_choices(options, {**_CHOICES, "loss": _LOSSES})
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
    """Return how many of a thousand people are kept out of the fit."""
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
) -> Plan:
    """Return the recommended plan, with what was asked for in its place.

    ``owner`` alone holds the label, or with None every party does. With the scope ``party`` none
    may pay more than its part of ``units``: one that has more to release (the label) would, so the
    whole plan is made smaller until it does not. ``groups`` are those of the features, by party;
    ``presence`` says that tables know whom a party has, and ``people`` how many people one party or
    two have, as far as an alignment told. ``sealed`` says that all parties' policies grant products
    under encryption: without it a plan has none unless the options ask for them.
    """
    for name, (least, most) in _COUNTS.items():
        count = getattr(options, name)
        if count is not None and not least <= count <= most:
            raise BadArgument(name, f"must lie between {least} and {most}")
    asked = units
    for _ in range(50):
        plan = _planned(
            options,
            features,
            n_rows=n_rows,
            units=asked,
            owner=owner,
            groups=groups or {},
            presence=presence,
            people=people or {},
            sealed=sealed,
        )
        costliest = max(plan.spec.max_units(party) for party in features)
        if options.scope == "joint" or costliest * len(features) <= units:
            return plan
        asked = asked * units // (costliest * len(features) + 1)
    raise BadArgument("scope", "must be joint: no plan keeps every party within its epsilon")


def _planned(
    options: JobOptions,
    features: Mapping[str, Sequence[str]],
    *,
    n_rows: int,
    units: int,
    owner: str | None,
    groups: Mapping[str, Sequence[str]],
    presence: bool,
    people: Mapping[tuple[str, ...], int],
    sealed: bool,
) -> Plan:
    try:
        problem = Problem(
            n_rows=n_rows,
            features=features,
            rho_units=units,
            label_owner=owner,
            loss=Loss(options.loss),
            correlation=options.correlation,
            groups=groups,
            presence=presence,
            people=people,
        )
        kind = _kind(options, problem, sealed=sealed)
        if (plan := method_of(kind).plan) is None:
            raise BadInput(f"jobs of kind {kind} are not planned from columns")
        return plan(problem, options)
    except ValueError as error:
        raise BadInput(f"no such plan: {error}") from None


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
        raise BadArgument("exchange", "must be sketched unless one party alone has the label")
    if options.buckets is not None and not sealed:
        raise BadArgument("buckets", "needs the exchange sealed")


def check_admm(options: AdmmOptions) -> None:
    """Refuse numbers that no job over clients can have, each by its name."""
    choices = {"loss": _LOSSES, "sampling": ("fixed", "poisson"), "regulariser": REGULARISERS}
    _check_choices(options, choices)
    strength = options.strength
    ranges = {
        "epsilon": (0.0 < options.epsilon < 1000.0, "above 0 and below 1000"),
        "gamma": (_LEAST <= options.gamma <= _MOST, "between 2**-40 and 2**40"),
        "lipschitz": (_LEAST <= options.lipschitz <= _MOST, "between 2**-40 and 2**40"),
        "step": (2.0**-17 < options.step <= 1.0, "above 2**-17 and not above 1"),
        "dual_weight": (0.0 <= options.dual_weight <= 1.0, "between 0 and 1"),
        "rounds": (1 <= options.rounds <= 10**6, "between 1 and 1000000"),
        "strength": (
            strength is None or 0.0 <= strength <= _MAX_STRENGTH,
            f"between 0 and {_MAX_STRENGTH:.0f}",
        ),
    }
    for name, (fits, where) in ranges.items():
        if not fits:
            raise BadArgument(name, f"must lie {where}")
    delta_of(options)
    if strength is not None and options.regulariser == "none":
        raise BadArgument("regulariser", "must not be none where a strength is given")


def cohort_sizes(options: AdmmOptions, clients: int) -> tuple[int, int]:
    """Return how many clients a round draws and how many answers it needs."""
    sampled = max(1, clients // 5) if options.sampled is None else options.sampled
    if not 1 <= sampled <= clients:
        raise BadArgument("sampled", f"must lie between 1 and the {clients} clients")
    minimum = max(1, sampled // 2) if options.minimum is None else options.minimum
    if not 1 <= minimum <= sampled:
        raise BadArgument("minimum", f"must lie between 1 and the {sampled} clients of a round")
    return sampled, minimum


def admm_spec(options: AdmmOptions, *, clients: int, features: int) -> AdmmSpec:
    """Return the specification that the options ask for."""
    check_admm(options)
    sampled, minimum = cohort_sizes(options, clients)
    most = _participations(options.rounds, sampled, minimum, clients)
    price = release_units(options.epsilon, delta_of(options, clients), most)
    try:
        return AdmmSpec(
            n_clients=clients,
            n_features=features,
            rounds=options.rounds,
            sampled=sampled,
            release_units=price,
            gamma=options.gamma,
            lipschitz=options.lipschitz,
            step=options.step,
            loss=LOSSES[options.loss],
            penalty=_penalty(options),
            intercept=True,
            sampling=Sampling(options.sampling),
            minimum=minimum,
            participations=most,
            dual_weight=options.dual_weight,
        )
    except ValueError as error:
        raise BadInput(str(error)) from None


def _participations(rounds: int, sampled: int, minimum: int, clients: int) -> int:
    """Return how often a client may answer: the least with which every round has its minimum.

    Before the last round ``(rounds - 1) sampled`` answers came, so at most that many over the limit
    of the clients are at it, however the drawings fell; the minimum must be left.
    """
    limit = participations_of(rounds, sampled, clients)
    while limit < rounds and clients - (rounds - 1) * sampled // limit < minimum:
        limit += 1
    return limit


def _penalty(options: AdmmOptions) -> Penalty:
    default = 1.0 if options.regulariser == "box" else 1e-3
    strength = default if options.strength is None else options.strength
    match options.regulariser:
        case "none":
            return Penalty()
        case "l1":
            return Penalty(l1=strength)
        case "l2":
            return Penalty(l2=strength)
        case "elastic-net":
            return Penalty(l1=strength / 2.0, l2=strength / 2.0)
        case _:
            return Penalty(bound=strength)


def _check_choices(
    options: JobOptions | AdmmOptions, choices: Mapping[str, Sequence[str | None]]
) -> None:
    for name, known in choices.items():
        if getattr(options, name) not in known:
            raise BadArgument(name, f"must be one of {', '.join(each for each in known if each)}")
