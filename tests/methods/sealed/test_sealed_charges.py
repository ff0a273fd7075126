"""Prices of sealed releases: exact, audited, and refused where the encryption would not hold."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.audit import rho_lower_bound
from support.entropy import ShakeNoise
from support.sealed import dot

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.methods.sealed.charges import (
    MAX_KEY_BITS,
    MAX_REPLY_BITS,
    Product,
    capacity,
    check_hints,
    check_key,
    check_reply,
    error_bound,
    millibits,
    norm2_bound,
    opened_millibits,
    replied_millibits,
    sigma2_within,
)
from colonnade.methods.sealed.packing import HIGH_STEP, LOW_FIELD, LOW_STEP, Layout
from colonnade.methods.sealed.ring import MODULUS
from colonnade.methods.sealed.rows import RowScale
from colonnade.methods.sealed.scheme import ERROR_SIGMA2
from colonnade.privacy.accounting import RHO_UNIT, rho_from_units, units_down
from colonnade.privacy.mechanisms import record_of
from colonnade.privacy.records import mechanism_from_record
from colonnade.privacy.ring_noise import SealedOpening, SealedReply, reply_sensitivity2

BALL = 1 << 14
ROWS = RowScale(1000, 1000, 4, BALL, 40)
OTHER = RowScale(1000, 1000, 3, BALL, 40)
PRODUCT = Product(ROWS, OTHER, Layout(1000, 4))
RHO = 0.5


def centred(raw: IntArray) -> FloatArray:
    return np.where(raw > MODULUS // 2, raw - MODULUS, raw).astype(float)


@given(
    st.integers(1, 2**20), st.integers(1, 2**20), st.integers(1, 500), st.sampled_from([1, 8, 32])
)
def test_the_sensitivity_of_a_reply_is_rounded_up_and_no_further(
    move2: int, radius2: int, error: int, step: int
) -> None:
    exact = move2 * (math.sqrt(radius2) + error / step) ** 2
    found = reply_sensitivity2(move2, radius2, error=error, low_step=step)
    assert exact * (1 - 1e-12) <= found <= exact + move2 + 2


def test_prices_are_those_of_the_formulas() -> None:
    opening = PRODUCT.opening(10**8)
    assert opening.cost == math.ceil(Fraction(ROWS.move2 * OTHER.radius2 * RHO_UNIT, 2 * 10**8))
    reply = PRODUCT.reply(10**8)
    factor = math.sqrt(ROWS.radius2) + error_bound(PRODUCT.layout) / LOW_STEP
    exact = OTHER.move2 * factor**2 / (2 * 10**8)
    assert rho_from_units(reply.cost) == pytest.approx(exact, rel=1e-6)
    assert rho_from_units(reply.cost) >= exact * (1 - 1e-12)


def test_a_price_buys_the_least_noise_for_all_releases_together() -> None:
    sigma2 = sigma2_within(units_down(0.01), [PRODUCT.reply2, PRODUCT.opening2])
    total = PRODUCT.reply(sigma2).cost + PRODUCT.opening(sigma2).cost
    assert total <= units_down(0.01) + 2
    finer = PRODUCT.reply(sigma2 - 1).cost + PRODUCT.opening(sigma2 - 1).cost
    assert finer > units_down(0.01)
    with pytest.raises(ValueError, match="price"):
        sigma2_within(0, [5])


def audited(mechanism: SealedOpening, other: IntArray) -> float:
    """Return a lower bound on rho from opening 0 or ``other``, both numbers of each coefficient."""
    draws, samples = 20_000, []
    wide = replace(mechanism, numbers=draws * other.size)
    for value in (np.zeros_like(other), other):
        noisy = wide.perturb(np.tile(value, draws), ShakeNoise(f"audit {value.sum()}"))
        raw = centred(noisy).reshape(draws, -1)
        high = np.rint(raw / HIGH_STEP)
        low = (raw - high * HIGH_STEP) / LOW_STEP
        samples.append(np.concatenate([low, high], axis=1))
    direction = samples[1].mean(axis=0) - samples[0].mean(axis=0)
    return rho_lower_bound(samples[0] @ direction, samples[1] @ direction)


def worst_opening(sigma2: int) -> tuple[SealedOpening, IntArray]:
    """Return a mechanism at rho 0.5 and the farthest raw value: both fields moved alike."""
    mechanism = SealedOpening(
        sigma2=sigma2,
        move2=sigma2 // 100,
        radius2=100,
        numbers=1,
        modulus=MODULUS,
        low_step=LOW_STEP,
        high_step=HIGH_STEP,
    )
    each = math.isqrt(mechanism.l2_sensitivity2 // 2)
    return mechanism, np.array([LOW_STEP * each + HIGH_STEP * each])


SIGMA2 = 10_000**2


def test_an_opening_reveals_no_more_than_it_costs() -> None:
    mechanism, other = worst_opening(SIGMA2)
    assert rho_from_units(mechanism.cost) == pytest.approx(RHO)
    assert 0.5 * RHO < audited(mechanism, other) <= RHO


def test_the_audit_catches_half_the_noise_on_either_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mechanism, other = worst_opening(SIGMA2)
    narrow = worst_opening(SIGMA2 // 4)[0]
    assert audited(replace(narrow, move2=mechanism.move2), other) > RHO
    from colonnade.privacy.ring_noise import Field

    right = Field.noise

    def no_high(self: Field, sigma2: int, shape: tuple[int, ...], source: ShakeNoise) -> IntArray:
        low = source.discrete_gaussian(sigma2 * self.low_step**2, math.prod(shape))
        return low.reshape(shape)

    monkeypatch.setattr(Field, "noise", no_high)
    assert audited(mechanism, other) > RHO
    monkeypatch.setattr(Field, "noise", right)
    assert audited(mechanism, other) <= RHO


def test_a_reply_reveals_no_more_than_it_costs_and_the_audit_catches_half_the_noise() -> None:
    # What an encryptor sees of a wanted coefficient is its raw value; c1 is the encryption's part.
    right = replace(PRODUCT.reply(SIGMA2), polynomials=10_000, columns=2, degree=1)
    each = math.isqrt(right.l2_sensitivity2 // 2)
    other = LOW_STEP * each + HIGH_STEP * each

    def shown(mechanism: SealedReply) -> float:
        samples = []
        for value in (0, other):
            exact = np.zeros((10_000, 2), np.int64)
            exact[:, 0] = value
            raw = centred(mechanism.perturb(exact, ShakeNoise(f"reply {value}"))[:, 0])
            high = np.rint(raw / HIGH_STEP)
            samples.append((raw - high * HIGH_STEP) / LOW_STEP + high)
        return rho_lower_bound(samples[0], samples[1])

    claimed = rho_from_units(right.cost)
    dear = replace(right, sigma2=right.sigma2 // 4)
    assert claimed > 0.01  # enough to be shown
    assert shown(right) <= claimed
    assert shown(dear) > claimed


def test_noise_is_drawn_anew_for_every_coefficient_and_stays_in_the_ring() -> None:
    mechanism = PRODUCT.reply(SIGMA2)
    value = np.full((mechanism.polynomials, mechanism.slots + mechanism.degree), MODULUS - 1)
    found = mechanism.perturb(value, ShakeNoise("ring"))
    assert int(found.min()) >= 0
    assert int(found.max()) < MODULUS
    assert len(set(found[:, : mechanism.slots].ravel().tolist())) == mechanism.polynomials * 2
    moved = centred((found[:, mechanism.slots :] - MODULUS + 1) % MODULUS)
    # Errors of variance 41 over 12,288 coefficients: sqrt(2 / 12288) is 1.3 %, five of them 6.4 %.
    assert float(moved.var()) == pytest.approx(41, rel=0.064)
    assert np.array_equal(value, np.full_like(value, MODULUS - 1))  # the input is left alone


def test_a_column_without_neighbour_has_a_uniform_high_field() -> None:
    mechanism = replace(PRODUCT.reply(SIGMA2), columns=3, polynomials=8000, degree=1)
    high = 5 * HIGH_STEP  # what an encryptor hid where nobody looks
    value = np.full((8000, 3), high, np.int64)
    found = mechanism.perturb(value, ShakeNoise("alone"))
    fields = np.rint(centred(found[:, :2]) / HIGH_STEP)
    # The pair's own high number is noise of deviation 10,000 around 5.
    assert float(fields[:, 0].std()) == pytest.approx(10_000, rel=0.05)
    counts, _ = np.histogram(fields[:, 1], bins=16, range=(-(2**23), 2**23))
    # 500 in each of 16 bins: chi-squared with 15 degrees of freedom exceeds 45 once in 10**4 times.
    assert float(((counts - 500) ** 2 / 500).sum()) < 45
    assert abs(float(np.corrcoef(fields[:, 1], found[:, 1] % HIGH_STEP)[0, 1])) < 0.06
    # Both low numbers have their whole noise. A deviation of 8000 errs by 1 / sqrt(16,000), 0.8 %;
    # at half the variance it would be 29 % less.
    lows = (centred(found[:, :2]) - fields * HIGH_STEP) / LOW_STEP
    assert lows.std(axis=0).tolist() == pytest.approx([10_000, 10_000], rel=0.04)


@pytest.mark.parametrize("change", [{"sigma2": 2**24 - 1}, {"sigma2": 2**48 + 1}, {"sigma2": 0}])
def test_noise_too_narrow_for_the_encryption_or_too_wide_is_refused(
    change: dict[str, int],
) -> None:
    for mechanism in (PRODUCT.reply(2**24), PRODUCT.opening(2**24)):
        with pytest.raises(ValueError, match=r"much|little|positive"):
            replace(mechanism, **change)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"much|little|positive"):
            mechanism_from_record({**record_of(mechanism), **change})


def test_values_outside_the_ring_do_not_pass() -> None:
    mechanism = PRODUCT.opening(SIGMA2)
    for bad in (-1, MODULUS):
        with pytest.raises(ValueError, match="ring"):
            mechanism.perturb(np.full(mechanism.numbers, bad), ShakeNoise("x"))
    with pytest.raises(ValueError, match="shape"):
        mechanism.perturb(np.zeros(mechanism.numbers + 1, np.int64), ShakeNoise("x"))


# -- keys ------------------------------------------------------------------------------------------


def leaked(field: int, sigma: float) -> float:
    """Return ``log2 field`` less the entropy of a discrete Gaussian modulo it, term by term."""
    reach = 40 * math.ceil(sigma) + field
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-((values / sigma) ** 2) / 2)
    odds = np.bincount(values % field, weights / weights.sum(), minlength=field)
    odds = odds[odds > 0]
    return math.log2(field) + float((odds * np.log2(odds)).sum())


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.2, 0.235, 1 / 4.13, 0.25, 0.3, 0.5, 0.99, 1.5, 3.0])
def test_bits_of_a_number_are_never_fewer_than_it_leaks(ratio: float) -> None:
    field = 4096
    sigma2 = round((ratio * field) ** 2)
    found, exact = millibits(field, sigma2), 1000 * leaked(field, math.sqrt(sigma2))
    assert exact < found
    assert found >= 1
    # No more than needed: the bounds are 0.13 bits off where they meet, and the margin is 5.
    assert found < exact + 140


@given(st.integers(2**24, 2**40), st.sampled_from([LOW_FIELD, LOW_FIELD // 2]))
def test_bits_of_a_number_under_narrow_noise_are_its_capacity_rounded_up(
    sigma2: int, field: int
) -> None:
    exact = 1000 * math.log2(field / math.sqrt(2 * math.pi * math.e * sigma2))
    assert exact + 4 <= millibits(field, sigma2) < exact + 5 + 1e-6


@given(st.integers(2**24, 2**56))
def test_bits_of_a_number_do_not_grow_with_its_noise(sigma2: int) -> None:
    assert millibits(LOW_FIELD, sigma2) >= millibits(LOW_FIELD, sigma2 + sigma2 // 8) >= 1


def test_both_numbers_of_a_raw_coefficient_leak_no_more_than_is_counted_for_them() -> None:
    # The ring in small: a modulus a little below the product of both fields, noise as shipped.
    low_field, high_field, step, modulus = 64, 32, 4, 8147
    for sigma in (2.0, 5.0, 9.0, 16.0):
        low, high = (np.arange(-reach, reach + 1) for reach in (int(40 * sigma * step), 600))
        weights = np.exp(-((low / (sigma * step)) ** 2) / 2), np.exp(-((high / sigma) ** 2) / 2)
        both = np.outer(*(each / each.sum() for each in weights))
        raw = (low[:, None] + low_field * step * high[None, :]) % modulus
        odds = np.bincount(raw.ravel(), both.ravel(), minlength=modulus)
        leak = math.log2(modulus) + float((odds * np.log2(odds)).sum())
        counted = capacity(low_field, int(sigma**2)) + capacity(high_field, int(sigma**2))
        assert leak < counted + 0.004


def test_a_key_that_would_open_too_much_is_refused() -> None:
    each = opened_millibits([PRODUCT], SIGMA2)
    assert each > 12 * 9000  # 12 numbers of more than 9 bits
    count = MAX_KEY_BITS * 1000 // each + 1
    check_key([PRODUCT] * (count - 1), SIGMA2)
    with pytest.raises(ValueError, match="bits"):
        check_key([PRODUCT] * count, SIGMA2)


def test_a_reply_that_would_carry_too_much_is_refused() -> None:
    def product(columns: int) -> Product:
        return Product(ROWS, replace(OTHER, columns=columns), Layout(1000, 4))

    each = replied_millibits(product(1), SIGMA2)
    # Two raw coefficients a column, both fields: log2(2**25 / 4.13e4) + log2(2**24 / 4.13e4).
    assert each == pytest.approx(2 * 18_330, rel=0.001)
    count = MAX_REPLY_BITS * 1000 // each
    check_reply(product(count), SIGMA2)
    with pytest.raises(ValueError, match="reply would carry"):
        check_reply(product(count + 1), SIGMA2)


def test_several_keys_open_less_each() -> None:
    wide = Product(
        RowScale(1000, 1000, 20, BALL, 60), RowScale(1000, 1000, 20, BALL, 60), Layout(1000, 20)
    )
    split = replace(wide, layout=Layout(1000, 20, groups=2))
    assert opened_millibits([split], SIGMA2) == opened_millibits([wide], SIGMA2) // 2


def test_hints_must_leave_the_standards_deviation() -> None:
    # 2 (1 / 41 + B / n2) <= 1 / 3.2**2 leaves B / n2 <= 0.02443.
    n2 = SIGMA2 * LOW_STEP**2
    check_hints(int(0.02443 * n2), SIGMA2)
    with pytest.raises(ValueError, match="small"):
        check_hints(int(0.02444 * n2), SIGMA2)
    check_reply(PRODUCT, 2**24)
    with pytest.raises(ValueError, match="small"):
        check_reply(replace(PRODUCT, layout=Layout(1000, 4000)), 2**24)


def test_openings_that_hide_the_keys_errors_too_little_are_refused() -> None:
    # Few numbers of many long rows: a key opens little, and its errors are multiplied with all.
    rows = RowScale(2**16, 2**16, 1, BALL, 400)
    long = Product(replace(rows, columns=2), rows, Layout(2**16, 2))
    assert opened_millibits([long], 2**24) < 30_000
    # Hints' M' M: 65,536 rows of norm 400.5, and twice the norm of a mask, 2.2e5: 1.05e10. Noise of
    # variance 1024 sigma2 has to be 40.9 times that: sigma2 of 4.2e8.
    check_key([long], 43 * 10**7)
    with pytest.raises(ValueError, match="noise is too small"):
        check_key([long], 41 * 10**7)


def test_what_hints_leave_is_above_the_smoothing_parameter() -> None:
    # Twice the squared smoothing parameter of a million coordinates for 2**-110, as a variance.
    smoothing = math.log(2 * 10**6 * (1 + 2.0**110)) / math.pi**2
    assert 9.0 < smoothing < 3.2**2
    n2 = SIGMA2 * LOW_STEP**2
    most = int(n2 * (1 / (2 * smoothing) - 1 / ERROR_SIGMA2))  # hints that would leave just that
    with pytest.raises(ValueError, match="small"):
        check_hints(most, SIGMA2)


def test_norms_stay_below_their_bound() -> None:
    drawn = ShakeNoise("norm").discrete_gaussian(ERROR_SIGMA2, 5 * 40_000).reshape(-1, 5)
    norms = (drawn**2).sum(axis=1)
    # Of 40,000 rows the largest square is near 37 sigma2; the bound, for 2**-80, is 150 sigma2.
    assert int(norms.max()) < norm2_bound(ERROR_SIGMA2, 5)
    assert norm2_bound(ERROR_SIGMA2, 5) < 10 * int(norms.max())


@pytest.mark.parametrize("layout", [Layout(600, 6), Layout(600, 2, lanes=4)], ids=repr)
def test_errors_act_on_replies_as_a_row_within_their_bound(layout: Layout) -> None:
    # The products of a row's move with all errors, coefficient by coefficient, against the bound.
    pytest.importorskip("seal")
    from colonnade.methods.sealed.ring import DEGREE

    noise, make = ShakeNoise("errors"), np.random.default_rng(1)
    worst = 0.0
    for place in range(4):
        errors = noise.discrete_gaussian(ERROR_SIGMA2, DEGREE) % MODULUS
        moved = np.zeros((layout.lanes, layout.rows), np.int64)
        moved[:, place] = make.integers(-60, 61, layout.lanes)
        (smalls,) = layout.multipliers(moved)
        product, _ = dot([(errors, errors)], [smalls[0]])
        size = math.sqrt(float((centred(product[layout.wanted]) ** 2).sum()))
        worst = max(worst, size / math.sqrt(float((moved**2).sum())))
    assert 0.0 < worst <= error_bound(layout)


def test_errors_of_other_lanes_count() -> None:
    # Errors that point the same way at every place that a row's products touch.
    pytest.importorskip("seal")
    from colonnade.methods.sealed.ring import DEGREE

    layout, row = Layout(400, 6, lanes=3), 100
    errors = np.zeros(DEGREE, np.int64)
    places = [place * layout.length + row for place in range(layout.slots)]
    wrapped = [DEGREE - lane * layout.length + row for lane in range(1, layout.lanes)]
    errors[places], errors[wrapped] = 1, MODULUS - 1
    moved = np.zeros((layout.lanes, layout.rows), np.int64)
    moved[:, row] = 1
    (smalls,) = layout.multipliers(moved)
    product, _ = dot([(errors, errors)], [smalls[0]])
    found = centred(product[layout.wanted])
    assert found.tolist() == [3.0] * 9
    count = len(places) + len(wrapped)
    size = math.sqrt(float((found**2).sum()) / layout.lanes)
    allowed = error_bound(layout) * math.sqrt(count / norm2_bound(ERROR_SIGMA2, count))
    assert math.sqrt(count) < size <= allowed  # more than the errors' norm, less than the bound
