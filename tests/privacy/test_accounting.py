"""Units, conversions and the filter, against published and independent numbers."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.core.errors import BudgetExceeded
from colonnade.privacy.accounting import (
    RHO_UNIT,
    Budget,
    _epsilon_at,
    _rounding_at,
    bounded_range_rho,
    default_delta,
    epsilon_of,
    format_upper_bound,
    rho_of,
    units_down,
    units_up,
)


@pytest.mark.parametrize(
    ("rho", "epsilon"),
    [(0.01, 0.622), (0.1, 2.142), (0.5, 5.222), (1.25, 8.846), (5.0, 20.55)],
)
def test_epsilon_of_gives_the_golden_numbers(rho: float, epsilon: float) -> None:
    # The golden numbers have three or four digits: half a unit in their last place.
    assert epsilon_of(rho, 1e-6) == pytest.approx(epsilon, abs=0.005 if epsilon > 10 else 0.0005)


@pytest.mark.parametrize(
    ("epsilon", "rho"),
    [(0.5, 0.00664), (1.0, 0.02436), (2.0, 0.08815), (4.0, 0.3111), (8.0, 1.0524)],
)
def test_rho_of_gives_the_golden_numbers(epsilon: float, rho: float) -> None:
    assert rho_of(epsilon, 1e-6) == pytest.approx(rho, rel=6e-4)


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.02, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2, 0.4])
def test_epsilon_of_agrees_with_an_independent_accountant(rho: float, delta: float) -> None:
    import dp_accounting
    from dp_accounting import rdp

    # Its orders are a grid; a fine one around the best order brings it to the same infimum.
    best = 1.0 + math.sqrt(-math.log(delta) / rho)
    orders = [1.0 + (best - 1.0) * 1.02**k for k in range(-120, 121)]
    accountant = rdp.RdpAccountant(orders=orders)
    accountant.compose(dp_accounting.ZCDpEvent(rho))
    assert epsilon_of(rho, delta) == pytest.approx(
        accountant.get_epsilon(delta), rel=2e-4, abs=1e-9
    )


@given(rho=st.floats(1e-12, 100.0), delta=st.floats(1e-15, 0.5))
def test_epsilon_of_is_near_the_minimum_over_a_grid_of_orders(rho: float, delta: float) -> None:
    excess = [10 ** (k / 50) for k in range(-600, 601)]
    grid = min(
        rho * (1 + e) + (-math.log(delta) + e * math.log(e / (1 + e)) - math.log1p(e)) / e
        for e in excess
    )
    found = epsilon_of(rho, delta)
    assert found <= max(grid, 0.0) * (1 + 1e-6) + 1e-12


@given(rho=st.floats(1e-14, 10.0), delta=st.floats(1e-12, 0.1))
def test_epsilon_of_is_never_below_the_truth(rho: float, delta: float) -> None:
    # Its own formula in 60 digits, at orders around the best: where terms cancel, as they do when
    # rho is tiny, rounding in 16 digits must not bring the result below the least of them.
    found = epsilon_of(rho, delta)
    assert found > 0.0
    with localcontext() as context:
        context.prec = 60
        log_delta, exact = Decimal(delta).ln(), Decimal(rho)
        centre = (-log_delta / exact).sqrt()
        least = min(
            exact * (1 + e) + (-log_delta + e * (e / (1 + e)).ln() - (1 + e).ln()) / e
            for e in (centre * Decimal("1.1") ** k for k in range(-40, 41))
        )
        # Between two orders of the grid the minimum is lower by less than a hundredth of a term.
        assert Decimal(found) >= least - exact * centre / 100


@pytest.mark.parametrize("rho", [1e-16, 1e-14, 1e-13])
def test_what_costs_something_never_has_an_epsilon_of_nothing(rho: float) -> None:
    # Delta alone covers these: the distance in total variation is at most sqrt(rho / 2) < 1e-6.
    assert 0.0 < epsilon_of(rho, 1e-6) < 1e-12
    assert float(format_upper_bound(epsilon_of(rho, 1e-6))) > 0.0


@pytest.mark.parametrize("order", [1e5, 3e6, 1e9])
def test_cancelling_terms_leave_a_bound(order: float) -> None:
    # A rho at which the two terms of the conversion all but cancel: what is left is rounding.
    with localcontext() as context:
        context.prec = 60
        excess = Decimal(order) - 1
        terms = (
            -Decimal("1e-6").ln() + excess * (excess / Decimal(order)).ln() - Decimal(order).ln()
        )
        for part in (1 + Decimal(k) / 10**13 for k in range(-40, 41, 3)):
            rho = float(-terms / excess / Decimal(order) * part)
            if rho <= 0.0:
                continue
            exact = Decimal(rho) * Decimal(order) + terms / excess
            found = _epsilon_at(order, rho, 1e-6) + _rounding_at(order, rho, 1e-6)
            assert Decimal(found) >= exact


@given(epsilon=st.floats(1e-15, 1e4), digits=st.integers(2, 8))
def test_an_epsilon_is_told_rounded_up(epsilon: float, digits: int) -> None:
    told = float(format_upper_bound(epsilon, digits))
    assert epsilon <= told * (1 + 1e-15)
    assert told <= epsilon * (1 + 10.0 ** (1 - digits)) * (1 + 1e-15)


@given(epsilon=st.floats(1e-3, 50.0), delta=st.floats(1e-12, 0.1))
def test_rho_of_never_promises_more_than_epsilon(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert epsilon_of(rho, delta) <= epsilon
    assert epsilon_of(rho * (1 + 1e-6), delta) > epsilon * (1 - 1e-9)


@pytest.mark.parametrize(("epsilon", "rho"), [(1.0, 0.1233), (2.0, 0.4745), (4.0, 1.670)])
def test_bounded_range_rho_gives_the_golden_numbers(epsilon: float, rho: float) -> None:
    assert bounded_range_rho(epsilon) == pytest.approx(rho, rel=5e-4)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
def test_bounded_range_rho_bounds_every_two_point_mechanism_and_is_attained(epsilon: float) -> None:
    # An epsilon-bounded-range mechanism with two outcomes has losses t and t - epsilon; q follows
    # from the probabilities adding up to one. Its Renyi divergence over its order must stay below.
    worst = 0.0
    for k in range(1, 400):
        t = epsilon * k / 400
        p = (1 - math.exp(t - epsilon)) / (math.exp(t) - math.exp(t - epsilon))
        p, q = p * math.exp(t), p
        for order in (1.0001, 1.5, 2.0, 8.0, 64.0):
            mixed = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
            worst = max(worst, math.log(mixed) / (order - 1) / order)
    bound = bounded_range_rho(epsilon)
    assert worst <= bound * (1 + 1e-6)
    assert worst >= bound * 0.999
    assert bound < epsilon**2 / 8


def test_units_round_against_the_spender() -> None:
    third = Fraction(1, 3)
    assert units_up(third) - units_down(third) == 1
    assert units_up(Fraction(1)) == units_down(1.0) == RHO_UNIT
    assert units_up(Fraction(1, 2**60)) == 1


def test_default_delta_is_small_for_few_rows_and_smaller_for_many() -> None:
    assert default_delta(1000) == 1e-6
    assert default_delta(10**7) == 1e-8


def test_a_budget_charges_up_to_its_cap_and_refuses_one_unit_more() -> None:
    budget = Budget(10).charge(4).charge(6)
    assert (budget.spent, budget.remaining) == (10, 0)
    with pytest.raises(BudgetExceeded):
        Budget(10, 4).charge(7)


@pytest.mark.parametrize("cost", [0, -1, -(10**30)])
def test_a_budget_never_grows(cost: int) -> None:
    with pytest.raises(ValueError, match="unit"):
        Budget(10, 5).charge(cost)


@pytest.mark.parametrize(("cap", "spent"), [(-1, 0), (1, 2), (2**63, 0), (5, -1)])
def test_an_impossible_budget_is_refused(cap: int, spent: int) -> None:
    with pytest.raises(ValueError, match="budget needs"):
        Budget(cap, spent)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_a_delta_outside_the_unit_interval_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        epsilon_of(1.0, delta)
    with pytest.raises(ValueError, match="delta"):
        rho_of(1.0, delta)


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_a_rho_or_epsilon_that_is_no_amount_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="rho"):
        epsilon_of(value, 1e-6)
    with pytest.raises(ValueError, match="epsilon"):
        rho_of(value, 1e-6)
