"""What a participation may cost, from the epsilon that was asked for."""

import math

from colonnade.core.arguments import BadArgument
from colonnade.privacy.accounting import rho_of, units_down


def release_units(epsilon: float, delta: float, participations: int) -> int:
    """Return the price of one participation such that all of a client's keep within epsilon."""
    if not 0.0 < epsilon < 1000.0:
        raise BadArgument("epsilon", "must lie above 0 and below 1000")
    try:
        return units_down(rho_of(epsilon, delta)) // participations
    except ValueError as error:
        raise BadArgument("delta", str(error).removeprefix("delta ")) from None


def participations_of(rounds: int, sampled: int, clients: int) -> int:
    """Return the least limit for each client with which all rounds can be filled."""
    return min(rounds, math.ceil(rounds * sampled / clients))
