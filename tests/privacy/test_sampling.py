"""The samplers have exactly the distributions they claim."""

import math
import os
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support.entropy import ShakeNoise, shake

from colonnade.core.arrays import IntArray
from colonnade.core.jit import njit
from colonnade.privacy import sampling
from colonnade.privacy.sampling import OsNoise


def gaussian_pmf(sigma2: int, reach: int) -> np.ndarray:
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * sigma2))
    return np.asarray(weights / weights.sum())


def laplace_pmf(scale: int, reach: int) -> np.ndarray:
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1.0)) / scale)
    return np.asarray(weights / weights.sum())


def chi_square_p(samples: IntArray, pmf: np.ndarray) -> float:
    """Return the p-value of a chi-square test, cells with fewer than 10 expected put together."""
    reach = pmf.size // 2
    counts = np.bincount(np.clip(samples, -reach, reach) + reach, minlength=pmf.size)
    expected = pmf * samples.size
    order = np.argsort(-expected)
    keep = order[expected[order] >= 10]
    rest = order[expected[order] < 10]
    observed = np.append(counts[keep], counts[rest].sum())
    wanted = np.append(expected[keep], expected[rest].sum())
    if wanted[-1] < 5:
        observed = np.append(observed[:-2], observed[-2:].sum())
        wanted = np.append(wanted[:-2], wanted[-2:].sum())
    return float(stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue)


# A right sampler gives a p-value below 1e-4 once in 10,000 seeds; the seed is fixed.
SMALLEST_P = 1e-4


@pytest.mark.parametrize("sigma2", [1, 2, 3, 10, 100, 2500])
def test_discrete_gaussian_fits_its_pmf(sigma2: int) -> None:
    pmf = gaussian_pmf(sigma2, 12 * math.isqrt(sigma2) + 12)
    samples = ShakeNoise(f"gaussian {sigma2}").discrete_gaussian(sigma2, 200_000)
    assert chi_square_p(samples, pmf) > SMALLEST_P
    # Narrow ones in large numbers come from a table: the same without it.
    scale = sampling._gaussian_scale(sigma2)
    by_rejection = sampling._draw(200_000, shake(f"{sigma2}"), scale=scale, sigma2=sigma2)
    assert chi_square_p(by_rejection, pmf) > SMALLEST_P


@pytest.mark.parametrize("scale", [1, 2, 3, 5, 17, 64])
def test_discrete_laplace_fits_its_pmf(scale: int) -> None:
    samples = ShakeNoise(f"laplace {scale}").discrete_laplace(scale, 200_000)
    assert chi_square_p(samples, laplace_pmf(scale, 40 * scale)) > SMALLEST_P


@pytest.mark.parametrize("wrong", [9, 11, 25, 100])
def test_the_chi_square_test_sees_a_wrong_variance(wrong: int) -> None:
    samples = ShakeNoise("wrong").discrete_gaussian(wrong, 200_000)
    assert chi_square_p(samples, gaussian_pmf(10, 60)) < 1e-12


@pytest.mark.parametrize("sigma", [2**12, 2**24, 2**33, 2**40, 2**53])
def test_wide_discrete_gaussians_have_normal_quantiles(sigma: int) -> None:
    # Kolmogorov-Smirnov: P(D > 2.23 / sqrt(n)) is about 1e-4; the lattice adds at most 1 / sigma.
    samples = ShakeNoise(f"wide {sigma}").discrete_gaussian(sigma**2, 100_000) / sigma
    distance = stats.kstest(samples, "norm").statistic
    assert distance < 2.23 / math.sqrt(samples.size) + 1 / sigma


@pytest.mark.parametrize("scale", [2**12 - 1, 2**31, 2**31 + 1, 2**40 + 12345, 2**54])
def test_wide_discrete_laplaces_have_laplace_quantiles(scale: int) -> None:
    samples = ShakeNoise(f"wide {scale}").discrete_laplace(scale, 100_000) / scale
    distance = stats.kstest(samples, "laplace").statistic
    assert distance < 2.23 / math.sqrt(samples.size) + 1 / scale


def test_the_lowest_bits_of_wide_noise_are_uniform() -> None:
    # 1e5 samples modulo 64: a chi-square with 63 degrees of freedom.
    samples = ShakeNoise("low bits").discrete_gaussian(2**80, 100_000)
    counts = np.bincount(samples % 64, minlength=64)
    assert stats.chisquare(counts).pvalue > SMALLEST_P


@pytest.mark.parametrize("sigma2", [0, 1, 2, 10, 12345, 2**48, 2**90, 3 * 2**106])
def test_the_compiled_sampler_equals_its_exact_twin_word_for_word(sigma2: int) -> None:
    scale = sampling._gaussian_scale(sigma2) if sigma2 else 1000
    entropy = shake(f"twin {sigma2}")
    words = np.frombuffer(entropy(4 * 16_000), np.uint32)
    made = np.empty(1200, np.int64)
    bits = (scale - 1).bit_length()
    status, done, end = sampling._fill(made, 0, words, 0, scale, bits, float(sigma2))
    assert (status, done) == (0, 1200)
    at, twin = 0, []
    for _ in range(1200):
        value, at = sampling._replay(words, at, entropy, scale=scale, sigma2=sigma2)
        twin.append(value)
    assert made.tolist() == twin
    assert at == end


def test_the_compiled_sampler_equals_its_python_function() -> None:
    words = np.frombuffer(shake("py_func")(4 * 4000), np.uint32)
    compiled, plain = np.empty(200, np.int64), np.empty(200, np.int64)
    scale = sampling._gaussian_scale(5000)
    bits = (scale - 1).bit_length()
    sampling._fill(compiled, 0, words, 0, scale, bits, 5000.0)
    sampling._fill.py_func(plain, 0, words, 0, scale, bits, 5000.0)  # type: ignore[attr-defined]
    assert compiled.tolist() == plain.tolist()


@pytest.mark.parametrize("words", [1, 3, 40])
def test_splitting_the_entropy_into_small_buffers_changes_nothing(words: int) -> None:
    stream = np.frombuffer(shake("split")(4 * 9000), np.uint32)
    whole = np.empty(500, np.int64)
    sampling._fill(whole, 0, stream, 0, 64, 6, 5000.0)
    taken = 0

    def dribble(size: int) -> bytes:
        nonlocal taken
        taken += words  # far less than was asked for, whatever the size
        return stream[taken - words : taken].tobytes()

    assert sampling._draw(500, dribble, scale=64, sigma2=5000).tolist() == whole.tolist()


def test_exp_is_as_accurate_as_the_exactness_argument_needs() -> None:
    # The docstring needs exp within 2**-45 of the truth, relatively; here at 20,000 arguments.
    def scaled(x: float) -> float:
        return 4294967296.0 * math.exp(-x)

    compiled = njit(scaled)
    xs = np.concatenate([np.linspace(0.0, 50.0, 10_000), np.geomspace(1e-12, 50.0, 10_000)])
    with localcontext() as context:
        context.prec = 40
        errors = [abs(Decimal(compiled(x)) / 2**32 / Decimal(-x).exp() - 1) for x in xs.tolist()]
    assert max(errors) < 2.0**-45


def test_the_table_of_powers_is_exact() -> None:
    wanted = [int(2**32 * Decimal(-k).exp()) for k in range(1, 24)]
    assert sampling._POWERS.tolist() == wanted
    assert wanted[-1] == 0  # the loop over the table must end


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(20)])
def test_a_coin_is_never_decided_wrongly_near_its_border(x: Fraction) -> None:
    border = (-Decimal(x.numerator) / Decimal(x.denominator)).exp() * 2**32
    for r in range(max(0, int(border) - 3), int(border) + 4):
        decided = sampling._coin(np.uint32(r), float(x))
        if r + 1 <= border:
            assert decided in (1, 2)
        elif r >= border:
            assert decided in (0, 2)
        else:
            assert decided == 2  # U may lie on either side


def test_an_undecided_coin_is_settled_by_further_bits() -> None:
    # U = 0.r + more bits; exp(-1) lies between r and r + 1, so the next 64 bits decide.
    with localcontext() as context:
        context.prec = 60
        border = Decimal(-1).exp() * 2**32
        r = int(border)
        rest = int((border - r) * 2**64)
    below = sampling._Uniform(r, lambda size: (rest - 1).to_bytes(size, "little"))
    above = sampling._Uniform(r, lambda size: (rest + 1).to_bytes(size, "little"))
    assert below.below_exp(1, 1)
    assert not above.below_exp(1, 1)


def test_a_lazily_drawn_uniform_remembers_its_bits() -> None:
    # The same U is compared with two borders: answers must be consistent with one number.
    uniform = sampling._Uniform(0, shake("remember"))
    small = [uniform.below_exp(k, 1) for k in range(20, 60)]
    assert small == sorted(small, reverse=True)


def test_undecided_samples_are_replayed_through_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    # Words that land exactly on the floor of exp(-1) 2**32 in the geometric count.
    floor = int(sampling._POWERS[0])
    undecided = np.array([0, floor], np.uint32)  # scale 1: u = 0, then the count
    made = np.empty(1, np.int64)
    padded = np.concatenate([undecided, np.zeros(8, np.uint32)])
    assert sampling._fill(made, 0, padded, 0, 1, 0, 0.0)[:2] == (2, 0)
    replays = []
    real = sampling._replay

    def spy(*args: object, **kwargs: object) -> tuple[int, int]:
        replays.append(args)
        return real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(sampling, "_replay", spy)
    first = iter([padded.tobytes()])
    rest = shake("rest")
    values = sampling._draw(50, lambda size: next(first, b"") or rest(size), scale=1, sigma2=0)
    assert len(replays) >= 1
    assert values.size == 50


def test_a_coin_with_certain_heads_needs_no_bits() -> None:
    def no_entropy(size: int) -> bytes:
        raise AssertionError("no bits are needed")

    assert sampling._Uniform(2**32 - 1, no_entropy).below_exp(0, 7)


def test_os_noise_differs_from_call_to_call_and_after_a_fork() -> None:
    noise = OsNoise()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, noise.discrete_gaussian(2**60, 8).tobytes())
        os._exit(0)
    os.waitpid(pid, 0)
    child = np.frombuffer(os.read(reading, 64), np.int64).tolist()
    os.close(reading)
    os.close(writing)
    parent, again = (noise.discrete_gaussian(2**60, 8).tolist() for _ in range(2))
    # Equal entries among these would happen by chance once in 2**25 or so.
    assert len({*child, *parent, *again}) == 24


def test_os_noise_takes_no_seed_and_keeps_no_state() -> None:
    assert OsNoise.__init__ is object.__init__
    with pytest.raises(TypeError):
        OsNoise(1)  # type: ignore[call-arg]
    assert vars(OsNoise()) == {}


def test_entropy_is_asked_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def spy(size: int) -> bytes:
        asked.append(size)
        return shake("spy")(size)

    monkeypatch.setattr(os, "urandom", spy)
    OsNoise().discrete_gaussian(100, 1000)
    OsNoise().discrete_laplace(100, 1000)
    assert len(asked) >= 2
    assert sum(asked) >= 2 * 4 * 1000


@pytest.mark.parametrize("sigma2", [0, -1])
def test_a_gaussian_without_variance_is_refused(sigma2: int) -> None:
    with pytest.raises(ValueError, match="sigma2"):
        OsNoise().discrete_gaussian(sigma2, 1)


@pytest.mark.parametrize("scale", [0, -5, 2**54 + 1])
def test_a_scale_out_of_range_is_refused(scale: int) -> None:
    with pytest.raises(ValueError, match="scale"):
        OsNoise().discrete_laplace(scale, 1)


def test_too_wide_a_gaussian_is_refused() -> None:
    with pytest.raises(ValueError, match="scale"):
        OsNoise().discrete_gaussian(2**112, 1)
