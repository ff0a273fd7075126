"""The planned variant: how far to move, how tightly to clip, what to spend, from public numbers.

A noisy fixed-point iteration on averaged proximal steps (Cyffers, Bellet and Basu 2023, with one
point for all clients and no duals; it is not ADMM with duals). The model starts at a distance of
about ``C0`` from a useful one. In a round of ``m`` answers the mean displacement points there up to
the noise ``s2`` of a coordinate and up to ``a``, how well the rows of one client tell; the gain
``k`` minimises the expected squared distance ``r**2`` that is left, as a Kalman filter does:

    C = max(r, f C0);   s2 = 2 C**2 h / (rho_t m**2);   k = a r**2 / (a**2 r**2 + d s2)
    (w, 2 b) += k mean;   v = (1 - a k)**2 v + k**2 s2;   r *= sqrt(1 - a k)

with ``h`` noises in the mean: one for each answer, or one for each sum. ``v`` is the noise that the
model has kept; at the end ``w`` shrinks by how much it stands out of it. No answer is overwritten
by a later one, so all that was paid for counts. Radii follow from planned cohorts and are part of
the job; gains follow from the answers that came.

The last rounds ask every client once for its own intercept. What an answer says given the true one
is known, clip and noise included, so the coordinator keeps a posterior on a grid and asks where it
is. The constants were chosen on two made-up problems and on the tables adult and credit_default;
the benchmarks say which tables they were not chosen on.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.losses import LOGISTIC, SQUARED, Loss
from colonnade.methods.admm.releases import WHOLE

GAMMA = 100.0
ROUNDS, INTERCEPT_ROUNDS = 10, 5
CLIENT_ROWS = 50
# The intercept counts double in the length of a displacement.
JOINT = 2.0


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
    return min(0.3, 0.1 * (1.0 + 2.0 * dim / (clients * rho)))


@dataclass(frozen=True, slots=True)
class Filter:
    """What is known of the model: its distance from a useful one and the noise that it carries."""

    alignment: float  # a: how well one client's step points
    distance2: float  # r**2
    noise2: float = 0.0  # v, of a coordinate

    @classmethod
    def start(cls, *, dim: int, rows: int, length: float) -> "Filter":
        """Return the filter before the first round."""
        return cls(1.0 / math.sqrt(1.0 + dim / rows), length**2)

    def gain(self, dim: int, noise2: float) -> float:
        """Return how far to follow a mean whose coordinates have so much noise."""
        signal = self.alignment * self.distance2
        return signal / (self.alignment * signal + dim * noise2)

    def after(self, gain: float, noise2: float) -> "Filter":
        """Return the filter after a move."""
        left = max(0.0, 1.0 - self.alignment * gain)
        noise = left**2 * self.noise2 + gain**2 * noise2
        return Filter(self.alignment, self.distance2 * left, noise)


def planned_radii(
    loss: Loss, *, dim: int, rows: int, steps: int, sampled: int, noises: float, rho: float
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
    state, radii = Filter.start(dim=dim, rows=rows, length=constants.length), []
    for _ in range(steps):
        part = max(math.sqrt(state.distance2) / constants.length, constants.floor)
        radii.append(min(WHOLE, max(1, math.ceil(WHOLE * part))))
        radius = radii[-1] / WHOLE * constants.length
        noise2 = 2.0 * radius**2 * noises / (rho * sampled**2)
        state = state.after(state.gain(dim, noise2), noise2)
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


def evidence(coef: FloatArray, noise2: float) -> float:
    """Return what part of the coefficients stands out of noise of so much a coordinate.

    It looks at releases alone, so it costs nothing.
    """
    if noise2 <= 0.0:
        return 1.0
    return min(1.0, max(0.5, float(coef @ coef) / (coef.size * noise2) - 1.0))


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
_TIGHT, _FLOOR, _WIDE = 0.5, 0.15, 0.6


def next_intercept(
    loss: Loss, rows: int, start: float, answers: Sequence[InterceptAnswers]
) -> tuple[float, float]:
    """Return the intercept after ``answers``, and the radius with which to ask about it next.

    Parameters
    ----------
    start
        The intercept that the displacements led to.
    """
    constants = constants_of(loss)
    R0, own = constants.spread, constants.own / math.sqrt(rows)
    grid = np.linspace(-4.0 * R0, 4.0 * R0, 401)
    near = _log_normal(grid - start, _WIDE * R0 / 2.0)
    log_chances = np.logaddexp(near, _log_normal(grid - start / 2.0, _WIDE * R0))
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
    deviation = math.sqrt(max(float(chances @ grid**2) - middle**2, 1e-12))
    return middle, max(_TIGHT * deviation, _FLOOR * R0)


def _log_normal(x: FloatArray, deviation: float) -> FloatArray:
    return -((x / deviation) ** 2) / 2.0 - math.log(deviation)
