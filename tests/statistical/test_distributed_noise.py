"""The price of noise in parts, against the exact divergence of a sum of discrete Gaussians."""

import math

import numpy as np
import pytest

from colonnade.core.arrays import FloatArray
from colonnade.privacy.accounting import RHO_UNIT, rho_from_units, units_down
from colonnade.privacy.distributed import MIN_DEVIATION, GaussianShare, tau
from colonnade.privacy.mechanisms import DiscreteGaussian, record_of
from colonnade.privacy.records import mechanism_from_record

pytestmark = pytest.mark.statistical


def pmf_of_sum(deviation: float, parts: int) -> FloatArray:
    """Return the probabilities of a sum of discrete Gaussians, centred."""
    reach = int(40 * max(deviation, 1.0)) + 5
    x = np.arange(-reach, reach + 1)
    one = np.exp(-(x**2) / (2.0 * deviation**2))
    one /= one.sum()
    total = one
    for _ in range(parts - 1):
        total = np.convolve(total, one)
    return total


def exact_rho(deviation: float, parts: int, shift: int) -> float:
    """Return the least zCDP of the sum moved by ``shift``: the most divergence over its order."""
    p = pmf_of_sum(deviation, parts)
    a, b = p[shift:], p[:-shift]
    keep = (a > 1e-250) & (b > 1e-250)
    logs = np.log(a[keep]), np.log(b[keep])
    found = 0.0
    for order in (1.01, 2.0, 4.0, 8.0):
        moment = float(np.exp(order * logs[0] + (1.0 - order) * logs[1]).sum())
        found = max(found, math.log(moment) / (order - 1.0) / order)
    return found


@pytest.mark.parametrize("deviation", [0.5, 0.7, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("parts", [2, 5])
def test_a_sum_of_parts_diverges_no_more_than_the_price_with_tau(
    deviation: float, parts: int
) -> None:
    for shift in (1, 3):
        nominal = shift**2 / (2.0 * parts * deviation**2)
        bound = nominal + tau(deviation, parts) / 4.0  # d = 1
        exact = exact_rho(deviation, parts, shift)
        # Sums of a few hundred terms of double precision: rounding errors are below 1e-12.
        assert exact <= bound * (1.0 + 1e-9)
        # Half the deviation would cost four times this: the bound is no idle one.
        assert exact > 0.5 * nominal


def test_without_tau_coarse_parts_would_be_underpriced() -> None:
    assert exact_rho(0.5, 5, 1) > 1.0 / (2.0 * 5 * 0.25) > exact_rho(1.0, 5, 1) / 2


def test_the_share_of_a_mechanism_costs_what_the_whole_does_and_alone_much_more() -> None:
    whole = DiscreteGaussian.within(units_down(0.05), l2_sensitivity2=4 * 2**40)
    share = GaussianShare.of(whole, parts=5, dim=30)
    assert share.cost == pytest.approx(whole.cost, rel=1e-9)
    assert share.cost <= whole.cost
    assert share.sigma2 * 5 >= whole.sigma2
    assert rho_from_units(share.cost_alone) == pytest.approx(5 * 0.05, rel=1e-6)
    assert tau(math.sqrt(share.sigma2), 5) * RHO_UNIT < 1.0
    assert mechanism_from_record(record_of(share)) == share


def test_what_a_sum_lacks_of_one_discrete_gaussian_is_charged_however_little() -> None:
    # Without it this price is a whole number of units; tau itself is below the least float.
    share = GaussianShare(sigma2=2**20, parts=4, l2_sensitivity2=8, dim=1)
    assert share.cost == RHO_UNIT // 2**20 + 1


def test_parts_of_a_small_deviation_are_refused() -> None:
    with pytest.raises(ValueError, match="deviation"):
        GaussianShare(MIN_DEVIATION**2 - 1, 5, 4, 1)
