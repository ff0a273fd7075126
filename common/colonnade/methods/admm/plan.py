"""What a participation may cost, from the epsilon that was asked for."""

import math
from dataclasses import dataclass

from colonnade.core.arguments import BadArgument
from colonnade.methods.admm.recipe import intercept_share
from colonnade.privacy.accounting import rho_from_units, rho_of, units_down


@dataclass(frozen=True, slots=True)
class PlannedPrices:
    """The prices of a planned job, in units."""

    release_units: int  # of a displacement
    intercept_units: int

    @property
    def rho(self) -> float:
        """Of a displacement."""
        return rho_from_units(self.release_units)


def release_units(epsilon: float, delta: float, participations: int) -> int:
    """Return the price of one participation such that all of a client's keep within epsilon."""
    return _budget(epsilon, delta) // participations


def planned_prices(
    epsilon: float, delta: float, *, participations: int, clients: int, dim: int
) -> PlannedPrices:
    """Return prices such that a client's displacements and its intercept keep within epsilon."""
    units = _budget(epsilon, delta)
    share = intercept_share(clients, dim, rho_from_units(units))
    last = max(1, math.floor(share * units))
    return PlannedPrices((units - last) // participations, last)


def _budget(epsilon: float, delta: float) -> int:
    if not 0.0 < epsilon < 1000.0:
        raise BadArgument("epsilon", "must lie above 0 and below 1000")
    try:
        return units_down(rho_of(epsilon, delta))
    except ValueError as error:
        raise BadArgument("delta", str(error).removeprefix("delta ")) from None


def participations_of(rounds: int, sampled: int, clients: int) -> int:
    """Return the least limit for each client with which all rounds can be filled."""
    return min(rounds, math.ceil(rounds * sampled / clients))
