"""Narrow discrete Gaussians by inversion: exact thresholds, exact where a word does not decide."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import stats
from support.entropy import shake

from colonnade.core.arrays import IntArray
from colonnade.privacy import narrow_gaussian
from colonnade.privacy.narrow_gaussian import draw, table_of


def exact_thresholds(sigma2: int, count: int) -> list[int]:
    """Return ``floor(2**63 P(|X| <= k))`` from sums of 150 digits, all terms that reach them."""
    with localcontext() as context:
        context.prec = 150
        weights = [(Decimal(-x * x) / (2 * sigma2)).exp() * (2 if x else 1) for x in range(520)]
        whole, inner, found = sum(weights), Decimal(0), []
        for weight in weights[:count]:
            inner += weight
            found.append(int(inner / whole * 2**63))
        return found


@pytest.mark.parametrize("sigma2", [1, 2, 41, 256])
def test_the_thresholds_are_the_distribution_to_the_last_bit(sigma2: int) -> None:
    found = table_of(sigma2).thresholds.tolist()
    assert found == exact_thresholds(sigma2, len(found))
    assert found[-1] == 2**63 - 1
    assert found[-2] < 2**63 - 1


@pytest.mark.parametrize("sigma2", [1, 3, 41, 200])
def test_samples_fit_their_distribution_and_half_the_variance_does_not(sigma2: int) -> None:
    # A right sampler gives a p-value below 1e-4 once in 10,000 seeds; the seed is fixed.
    reach = 5 * math.isqrt(sigma2) + 3
    samples = draw(sigma2, 300_000, shake(f"narrow {sigma2}"))

    def p_value(variance: int) -> float:
        weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
        counts = np.bincount(np.clip(samples, -reach, reach) + reach, minlength=weights.size)
        keep = weights / weights.sum() * samples.size >= 10
        wanted = weights[keep] / weights[keep].sum() * counts[keep].sum()
        return float(stats.chisquare(counts[keep], wanted).pvalue)

    assert p_value(sigma2) > 1e-4
    assert p_value(sigma2 + max(1, sigma2 // 20)) < 1e-9
    # Both signs are as likely, and 0 has no second chance.
    signs = int((samples > 0).sum()) - int((samples < 0).sum())
    assert abs(signs) < 4 * samples.size**0.5


def words_of(*values: int) -> bytes:
    return b"".join(value.to_bytes(8, "little") for value in values)


def scripted(first: bytes, *more: int) -> IntArray:
    """Draw from these bytes, then from 64-bit words, until they end."""
    left = [first, *(words_of(word) for word in more)]
    return draw(41, len(first) // 8, lambda size: left.pop(0)[:size])


def test_a_word_beside_a_threshold_is_decided_by_it() -> None:
    thresholds = table_of(41).thresholds.tolist()
    for size in (0, 1, 7, 30):
        below, above = 2 * (thresholds[size] - 1), 2 * (thresholds[size] + 1)
        found = scripted(words_of(below, below + 1, above, above + 1)).tolist()
        assert found == [size, -size, size + 1, -size - 1]


@pytest.mark.parametrize("size", [0, 1, 7, 30, 58])
def test_a_word_on_a_threshold_is_decided_by_further_bits(size: int) -> None:
    with localcontext() as context:
        context.prec = 150
        weights = [(Decimal(-x * x) / 82).exp() * (2 if x else 1) for x in range(300)]
        share = sum(weights[: size + 1]) / sum(weights)
        next_bits = int(share * 2**127) % 2**64  # of the threshold, after its first 63
    on = 2 * int(table_of(41).thresholds[size])
    assert scripted(words_of(on), next_bits - 1).tolist() == [size]
    assert scripted(words_of(on + 1), next_bits - 1).tolist() == [-size]
    # From the last size of the table on, the same word reaches further sizes.
    assert scripted(words_of(on), next_bits + 1, 2**64 - 1)[0] > size
    assert scripted(words_of(on, 0), next_bits - 1).tolist() == [size, 0]


def test_the_kernel_equals_its_plain_twin() -> None:
    table = table_of(41)
    words = np.frombuffer(shake("twin")(8 * 2000), "<u8").astype(np.uint64)
    fast, slow = np.empty(2000, np.int64), np.empty(2000, np.int64)
    for out, kernel in (
        (fast, narrow_gaussian._fill),
        (slow, narrow_gaussian._fill.py_func),  # type: ignore[attr-defined]
    ):
        assert kernel(words, table.thresholds, table.guide, out, 0) == 2000
    assert np.array_equal(fast, slow)


@pytest.mark.parametrize("sigma2", [0, 257])
def test_other_variances_have_no_table(sigma2: int) -> None:
    with pytest.raises(ValueError, match="variances"):
        draw(sigma2, 10, shake("no"))
