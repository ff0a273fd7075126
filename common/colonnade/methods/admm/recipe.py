"""The planned variant: how far to move, how tightly to clip, what to spend, from public numbers.

A noisy fixed-point iteration on averaged proximal steps (Cyffers, Bellet and Basu 2023, with one
point for all clients and no duals; it is not ADMM with duals). The model starts at a distance of
about ``C0`` from a useful one. In a round of ``m`` answers the mean displacement points there up to
the noise ``s2`` of a coordinate and up to ``a``, how well the rows of one client tell; the gain
``k`` minimises the expected squared distance ``r**2`` that is left, as a Kalman filter does:

    C = t max(r, f C0);   s2 = 2 C**2 h / (rho_t m**2)
    c = a min(1, C / r);   k = c r**2 / (c**2 r**2 + d s2);   w += k mean;   r *= sqrt(1 - c k)

with ``h`` noises in the mean: one for each answer, or one for each sum. Answers are clipped below
their expected length (``t``) where noise dominates anyway: a short radius shortens all of them, and
those most that say the least. The intercept ``b`` has a filter of its own, because a single number
is sooner told from noise than ``d`` are. No answer is overwritten by a later one, so all that was
paid for counts. Radii follow from planned cohorts and are part of the job; gains follow from the
answers that came.

The last rounds ask every client once for its own intercept. What an answer says given the true one
is known, clip and noise included, so the coordinator keeps a posterior on a grid and asks where it
is. The benchmarks say which tables the constants were chosen on.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.losses import LOGISTIC, SQUARED, Loss
from colonnade.methods.admm.releases import WHOLE

GAMMA = 100.0
ROUNDS, INTERCEPT_ROUNDS = 10, 5
CLIENT_ROWS = 50
# The intercept counts double in the length of a displacement.
JOINT = 2.0
# The least radius over the expected length of an answer, and the least gamma over the greatest.
_TIGHTEST, _SHORTEST = 0.5, 0.03
# The most of a budget that the intercept takes: among many columns and much noise,
# the rest is needed more.
_MOST_INTERCEPT = 0.15
_LEAST2 = 1e-12


@dataclass(frozen=True, slots=True)
class Constants:
    """What is expected of a model on features within +-1."""

    length: float  # C0, of the model
    floor: float  # f: the least radius over the first
    spread: float  # R0, of the intercept
    own: float  # of clients' own intercepts, for one row
    curvature: float  # of the mean loss, for penalties


_CONSTANTS = {
    SQUARED: Constants(0.7, 0.3, 0.3, 0.4, 0.125),
    LOGISTIC: Constants(3.2, 0.6, 2.0, 2.2, 0.03),
}


def constants_of(loss: Loss) -> Constants:
    """Return what is expected of a model with this loss."""
    return _CONSTANTS[loss]


def intercept_share(clients: int, dim: int, rho: float) -> float:
    """Return the part of a client's budget that its own intercept takes (kappa)."""
    return min(_MOST_INTERCEPT, 0.1 * (1.0 + 2.0 * dim / (clients * rho)))


@dataclass(frozen=True, slots=True)
class Filter:
    """What is known of the model: its distance from a useful one, and how well its intercept is."""

    alignment: float  # a: how well one client's step points
    own2: float  # variance of one client's own intercept
    distance2: float  # r**2
    intercept2: float  # variance of b

    @classmethod
    def start(cls, loss: Loss, *, dim: int, rows: int) -> "Filter":
        """Return the filter before the first round."""
        constants = constants_of(loss)
        own2, spread2 = constants.own**2 / rows, (constants.spread / 2.0) ** 2
        return cls(_alignment(dim, rows), own2, constants.length**2, spread2)

    def left(self, radius: float) -> float:
        """Return what a clip at ``radius`` leaves of an answer as long as is expected."""
        return min(1.0, radius / math.sqrt(self.distance2))

    def gain(self, dim: int, noise2: float, radius: float) -> float:
        """Return how far to follow a mean whose coordinates have so much noise."""
        slope = self.alignment * self.left(radius)
        return slope * self.distance2 / (slope**2 * self.distance2 + dim * noise2)

    def intercept_gain(self, noise2: float, radius: float, answers: int) -> float:
        """Return how far to follow the mean of own intercepts, whose noise is that of ``2 b``."""
        slope = self.left(radius)
        spread2 = noise2 / JOINT**2 + slope**2 * self.own2 / answers
        return slope * self.intercept2 / (slope**2 * self.intercept2 + spread2)

    def after(self, noise2: float, radius: float, *, dim: int, answers: int) -> "Filter":
        """Return the filter after a move by both gains."""
        slope = self.left(radius)
        moved = self.alignment * slope * self.gain(dim, noise2, radius)
        known = slope * self.intercept_gain(noise2, radius, answers)
        return replace(
            self,
            distance2=max(self.distance2 * (1.0 - moved), _LEAST2),
            intercept2=max(self.intercept2 * (1.0 - known), _LEAST2),
        )


def _alignment(dim: int, rows: int) -> float:
    return 1.0 / math.sqrt(1.0 + dim / rows)


def relaxation(loss: Loss, gamma: float) -> float:
    """Return by how much displacements are lengthened: short proximal steps move less."""
    return max(1.0, math.sqrt(GAMMA / gamma)) if loss.classifies else 1.0


@dataclass(frozen=True, slots=True)
class Caution:
    """How a job holds back where noise dominates (see the module)."""

    gamma: float
    radius: float  # of the first round

    @classmethod
    def of(
        cls, loss: Loss, *, dim: int, rows: int, sampled: int, noises: float, rho: float
    ) -> "Caution":
        """Return it from public numbers; ``noises`` and ``rho`` are those of `planned_radii`."""
        ratio = 2.0 * dim * noises / (rho * (sampled * _alignment(dim, rows)) ** 2)
        calm = 1.0 / math.hypot(1.0, ratio)
        gamma = GAMMA * max(_SHORTEST, calm) if loss.classifies else GAMMA
        return cls(gamma, constants_of(loss).length * max(_TIGHTEST, calm))


def planned_radii(
    loss: Loss,
    *,
    first: float,
    dim: int,
    rows: int,
    steps: int,
    sampled: int,
    noises: float,
    rho: float,
) -> tuple[int, ...]:
    """Return the radius of each round in 1024ths of the first, for full cohorts.

    Parameters
    ----------
    noises
        How many noises the mean of a round carries.
    rho
        Price of one answer.
    """
    constants = constants_of(loss)
    state, radii = Filter.start(loss, dim=dim, rows=rows), []
    for _ in range(steps):
        part = max(math.sqrt(state.distance2) / constants.length, constants.floor)
        radii.append(min(WHOLE, max(1, math.ceil(WHOLE * part))))
        radius = radii[-1] / WHOLE * first
        noise2 = 2.0 * radius**2 * noises / (rho * sampled**2)
        state = state.after(noise2, radius, dim=dim, answers=sampled)
    return tuple(radii)


def gradient_step(
    loss: Loss, *, dim: int, rounds: int, sampled: int, noises: float, rho: float
) -> tuple[float, float]:
    """Return length and clip of gradient steps, for clients whose rows differ.

    With the squared loss steps are shorter where the noise that they add up to would be longer
    than a model; a classifier's length does not matter. Chosen on the made-up problems and on
    credit_default, with clients sorted by label.
    """
    if loss.classifies:
        return 16.0, 0.3
    length, clip = 8.0, 0.1
    lengths2 = length**2 * sum(1.0 / (round_ + 1) for round_ in range(rounds))
    added2 = dim * lengths2 * 2.0 * clip**2 * noises / (rho * sampled**2)
    return length / (1.0 + (added2 / 1.5**2) ** 2), clip


@dataclass(frozen=True, slots=True)
class InterceptAnswers:
    """The mean of answers to one question about the intercept."""

    at: float  # b
    radius: float  # C
    mean: float
    count: int
    noise2: float  # of the mean


_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_TIGHT, _FLOOR = 0.5, 0.15


def next_intercept(
    loss: Loss, rows: int, start: float, deviation: float, answers: Sequence[InterceptAnswers]
) -> tuple[float, float]:
    """Return the intercept after ``answers``, and the radius with which to ask about it next.

    Parameters
    ----------
    start, deviation
        The intercept that the displacements led to, and how far off it may be; as likely twice.
    """
    constants = constants_of(loss)
    R0, own = constants.spread, constants.own / math.sqrt(rows)
    grid = np.linspace(-4.0 * R0, 4.0 * R0, 401)
    log_chances = np.logaddexp(*(_log_normal(grid - start, f * deviation) for f in (1.0, 2.0)))
    for each in answers:
        if not each.count:
            continue
        C = each.radius
        moved = np.clip(grid[:, None] - each.at + own * _POINTS[None], -C, C) @ _WEIGHTS
        spread2 = each.noise2 + C * C / each.count
        log_chances -= (each.mean - moved) ** 2 / (2.0 * spread2)
    chances = np.exp(log_chances - log_chances.max())
    chances /= chances.sum()
    middle = float(chances @ grid)
    left = math.sqrt(max(float(chances @ grid**2) - middle**2, 1e-12))
    return middle, max(_TIGHT * left, _FLOOR * R0)


def _log_normal(x: FloatArray, deviation: float) -> FloatArray:
    return -((x / deviation) ** 2) / 2.0 - math.log(deviation)
