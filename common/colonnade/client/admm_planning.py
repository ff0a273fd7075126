"""From options and public numbers to the specification of a job over clients."""

from collections.abc import Mapping
from typing import Any

from colonnade.client.options import AdmmOptions
from colonnade.client.planning import LOSS_NAMES, check_choices, delta_of
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput
from colonnade.linear.losses import LOSSES, Loss
from colonnade.linear.penalties import Penalty
from colonnade.masking.rules import CohortRules
from colonnade.methods.admm import recipe
from colonnade.methods.admm.choices import Aggregate, ClientSampling, Variant
from colonnade.methods.admm.plan import (
    PlannedPrices,
    participations_of,
    planned_prices,
    release_units,
)
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.privacy.accounting import rho_from_units

REGULARISERS = ("none", "l1", "l2", "elastic-net", "box")
VARIANTS = ("planned", "paper")
CLIENTS = ("alike", "different")
AGGREGATES = ("none", "host", "cohort")
_MAX_STRENGTH = 1e6  # far beyond what leaves any coefficient
_LEAST, _MOST = 2.0**-40, 2.0**40
# What belongs to one variant alone.
_OF_PAPER = ("step", "dual_weight")
_PAPER = {"gamma": 5.0, "lipschitz": 0.1, "step": 0.5, "dual_weight": 0.0}


def variant_of(options: AdmmOptions) -> Variant:
    """Return what clients compute."""
    if options.variant == "paper":
        return Variant.PAPER
    return Variant.PLANNED if options.clients == "alike" else Variant.GRADIENT


def check_admm(options: AdmmOptions) -> None:
    """Refuse numbers that no job over clients can have, each by its name."""
    choices = {
        "loss": LOSS_NAMES,
        "sampling": ("fixed", "poisson"),
        "regulariser": REGULARISERS,
        "variant": VARIANTS,
        "clients": CLIENTS,
        "aggregate": AGGREGATES,
    }
    check_choices(options, choices)
    tiny = 2.0**-17
    ranges = {
        "epsilon": (0.0 < options.epsilon < 1000.0, "above 0 and below 1000"),
        "gamma": (_between(options.gamma, _LEAST, _MOST), "between 2**-40 and 2**40"),
        "lipschitz": (_between(options.lipschitz, _LEAST, _MOST), "between 2**-40 and 2**40"),
        "step": (
            _between(options.step, tiny, 1.0) and options.step != tiny,
            "above 2**-17 and not above 1",
        ),
        "dual_weight": (_between(options.dual_weight, 0.0, 1.0), "between 0 and 1"),
        "rounds": (1 <= options.rounds <= 10**6, "between 1 and 1000000"),
        "strength": (
            _between(options.strength, 0.0, _MAX_STRENGTH),
            f"between 0 and {_MAX_STRENGTH:.0f}",
        ),
        "expected_rows": (_between(options.expected_rows, 1, 10**6), "between 1 and 1000000"),
    }
    for name, (fits, where) in ranges.items():
        if not fits:
            raise BadArgument(name, f"must lie {where}")
    delta_of(options)
    if options.strength is not None and options.regulariser == "none":
        raise BadArgument("regulariser", "must not be none where a strength is given")
    _check_variant(options)


def _between(value: float | None, least: float, most: float) -> bool:
    """Return whether an option was left out or lies in its range."""
    return value is None or least <= value <= most


def _check_variant(options: AdmmOptions) -> None:
    """Refuse options that another variant has."""
    if options.variant != "paper":
        for name in _OF_PAPER:
            if getattr(options, name) is not None:
                raise BadArgument(name, "is for the variant paper")
    if options.variant == "paper" and options.clients != "alike":
        raise BadArgument("clients", "is for the variant planned")
    if options.variant == "paper" and options.aggregate != "none":
        raise BadArgument("aggregate", "is for the variant planned")
    if options.colluding is not None and options.aggregate != "cohort":
        raise BadArgument("colluding", "is for sums over a cohort")
    if options.colluding is not None and options.colluding < 0:
        raise BadArgument("colluding", "cannot be negative")
    if options.expected_rows is not None and variant_of(options) is not Variant.PLANNED:
        raise BadArgument("expected_rows", "is for the variant planned with clients alike")


def cohort_sizes(options: AdmmOptions, clients: int) -> tuple[int, int]:
    """Return how many clients a round draws and how many answers it needs."""
    sampled = max(1, clients // 5) if options.sampled is None else options.sampled
    if not 1 <= sampled <= clients:
        raise BadArgument("sampled", f"must lie between 1 and the {clients} clients")
    minimum = max(1, sampled // 2) if options.minimum is None else options.minimum
    if not 1 <= minimum <= sampled:
        raise BadArgument("minimum", f"must lie between 1 and the {sampled} clients of a round")
    return sampled, minimum


def admm_spec(options: AdmmOptions, *, clients: int, features: int, hosts: int = 1) -> AdmmSpec:
    """Return the specification that the options ask for, for clients at so many hosts."""
    check_admm(options)
    sampled, minimum = cohort_sizes(options, clients)
    if options.aggregate == "cohort":  # every host has somebody in every sum
        sampled = max(sampled, min(hosts, clients))
        # Hosts are asked in proportion, so that they run out of clients together.
        drawn = hosts * -(-sampled // hosts)
        most = participations_of(options.rounds, drawn, max(1, clients // hosts) * hosts)
    else:
        most = _participations(options.rounds, sampled, minimum, clients)
    numbers: dict[str, Any] = {
        "n_clients": clients,
        "n_features": features,
        "sampled": sampled,
        "loss": LOSSES[options.loss],
        "penalty": _penalty(options),
        "intercept": True,
        "sampling": ClientSampling(options.sampling),
        "minimum": minimum,
        "participations": most,
        "variant": variant_of(options),
        "aggregate": Aggregate(options.aggregate),
    }
    delta = delta_of(options, clients)
    noises: float = min(sampled, hosts) if options.aggregate == "host" else sampled
    try:
        if options.aggregate == "cohort":
            rules = _rules(options, hosts)
            numbers |= {"maskers": rules.maskers, "colluding": rules.colluding}
            # Every part is so much of a noise.
            noises = rules.maskers / rules.honest
        if variant_of(options) is Variant.PLANNED:
            return _planned(options, numbers, delta, noises=noises)
        price = release_units(options.epsilon, delta, most)
        defaults: Mapping[str, float] = _PAPER
        if variant_of(options) is Variant.GRADIENT:
            defaults = _gradient(options, numbers, rho_from_units(price), noises=noises)
        for name, default in defaults.items():
            given = getattr(options, name)
            numbers[name] = default if given is None else given
        return AdmmSpec(rounds=options.rounds, release_units=price, **numbers)
    except ValueError as error:
        raise BadInput(str(error)) from None


def _rules(options: AdmmOptions, hosts: int) -> CohortRules:
    if options.colluding is None:
        return CohortRules.default(hosts)
    return CohortRules(hosts, options.colluding)


def _gradient(
    options: AdmmOptions, numbers: Mapping[str, Any], rho: float, *, noises: float
) -> Mapping[str, float]:
    gamma, lipschitz = recipe.gradient_step(
        numbers["loss"],
        dim=numbers["n_features"] + 1,
        rounds=options.rounds,
        sampled=numbers["sampled"],
        noises=noises,
        rho=rho,
    )
    return {"gamma": gamma, "lipschitz": lipschitz}


def _planned(
    options: AdmmOptions, numbers: Mapping[str, Any], delta: float, *, noises: float
) -> AdmmSpec:
    """Return a planned job: radii, prices and rounds from public numbers (`admm.recipe`)."""
    loss: Loss = numbers["loss"]
    clients, dim = numbers["n_clients"], numbers["n_features"] + 1
    rows = options.expected_rows or recipe.CLIENT_ROWS
    prices: PlannedPrices = planned_prices(
        options.epsilon, delta, participations=numbers["participations"], clients=clients, dim=dim
    )
    sizes: dict[str, Any] = {
        "dim": dim,
        "rows": rows,
        "sampled": numbers["sampled"],
        "noises": noises,
        "rho": prices.rho,
    }
    caution = recipe.Caution.of(loss, **sizes)
    gamma = caution.gamma if options.gamma is None else options.gamma
    lipschitz = caution.radius / gamma if options.lipschitz is None else options.lipschitz
    radii = recipe.planned_radii(loss, first=gamma * lipschitz, steps=options.rounds, **sizes)
    last = min(recipe.INTERCEPT_ROUNDS, clients)
    return AdmmSpec(
        rounds=options.rounds + last,
        release_units=prices.release_units,
        gamma=gamma,
        lipschitz=lipschitz,
        radii=radii,
        intercept_rounds=last,
        intercept_units=prices.intercept_units,
        client_rows=rows,
        **numbers,
    )


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
