"""Arithmetic of fixed time is as good as the processor's own."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.core.constant_time import (
    TINY,
    exp_down,
    floor_divide,
    flush,
    inverse_root,
    reciprocal,
)

CLAIMED = Fraction(1, 2**50)
no_deadline = settings(deadline=None)  # the first example compiles
exponents = st.floats(-999.0, 999.0)


@no_deadline
@given(exponents)
def test_reciprocals_are_within_the_stated_error(exponent: float) -> None:
    x = 2.0**exponent
    assert abs(Fraction(reciprocal(x)) * Fraction(x) - 1) <= CLAIMED
    assert reciprocal.py_func(x) == reciprocal(x)  # type: ignore[attr-defined]


@no_deadline
@given(exponents)
def test_inverse_roots_are_within_the_stated_error(exponent: float) -> None:
    x = 2.0**exponent
    # With y = (1 + e) / sqrt(x), y**2 x - 1 is 2 e up to a square.
    assert abs(Fraction(inverse_root(x)) ** 2 * Fraction(x) - 1) <= 2 * CLAIMED
    assert inverse_root.py_func(x) == inverse_root(x)  # type: ignore[attr-defined]


@no_deadline
@given(st.floats(-700.0, 0.0))
def test_exponentials_are_within_the_stated_error(x: float) -> None:
    with localcontext(prec=40):
        assert abs(Decimal(exp_down(x)) / Decimal(x).exp() - 1) <= Decimal(2) ** -50
    assert exp_down.py_func(x) == exp_down(x)  # type: ignore[attr-defined]


@no_deadline
@given(st.integers(-(2**52), 2**52), st.integers(1, 2**40))
def test_floors_of_quotients_are_exact(value: int, step: int) -> None:
    assert floor_divide(np.int64(value), step, 1.0 / step) == value // step


def test_only_the_tiniest_numbers_become_zero() -> None:
    below = math.nextafter(TINY, 0.0)
    kept = [TINY, -TINY, 1.0, -math.inf, math.inf]
    assert [flush(np.float64(x)) for x in kept] == kept
    assert [flush(np.float64(x)) for x in (below, -below, 5e-324, 0.0)] == [0.0] * 4
