"""From standard deviations to steps: how rows of a sealed job are scaled, from public numbers.

Privacy: the integers of a `RowScale` carry the bounds, whatever the numbers here are; a party
computes them from the specification, clips its rows by them and is charged for them.
"""

import math
from dataclasses import dataclass

from colonnade.linear.ball import BALL
from colonnade.methods.sealed.rows import RowScale

# A sum of products of two columns with correlation 1 and deviation 1 reaches this: 0.7 of what the
# narrower field holds, so that a label's weight and noise fit beside it.
_FIELD_REACH = 2.0**22.5
_MAX_RADIUS = 400
# Shielded buckets are stored in two bytes, in units of so many steps of the ball.
SHIELD_UNIT = 16
MAX_NOISE = SHIELD_UNIT << 15


@dataclass(frozen=True, slots=True)
class RowShape:
    """Rows of columns with known deviations: their ball, and that of their buckets."""

    n_rows: int
    buckets: int
    weights: tuple[float, ...]  # deviations of the columns
    reach: float  # squared radius of a row's ball over the expected square
    bucket_reach: float  # the same for a bucket
    shield: int = 0  # variance of a shield's noise, in squares of the ball's step; 0 for none

    @property
    def ball(self) -> float:
        """Radius of a row's ball, in standard deviations."""
        return math.sqrt(self.reach * self._energy)

    @property
    def spread(self) -> float:
        """What the radius of a row in steps stands for, in standard deviations of a row."""
        if self.n_rows <= self.buckets and not self.shield:
            return self.ball
        noise = len(self.weights) * self.noise**2
        return math.sqrt(self.bucket_reach * (self._energy * self.together + noise))

    @property
    def together(self) -> float:
        """Rows that share a bucket, on average."""
        return max(1.0, self.n_rows / self.buckets)

    @property
    def noise(self) -> float:
        """Deviation of a shield's noise on a bucket, in standard deviations of a column."""
        return math.sqrt(self.shield) / BALL * self.ball

    @property
    def scale(self) -> RowScale:
        """How rows become steps."""
        spread, unit = self.spread, math.sqrt(_FIELD_REACH / self.n_rows)
        radius = max(1, min(int(unit * spread), _MAX_RADIUS))
        keeps = self.n_rows <= self.buckets and not self.shield
        ball = BALL if keeps else max(1, round(BALL * spread / self.ball))
        count = len(self.weights)
        noise = MAX_NOISE * (math.isqrt(count) + 1) if self.shield else 0
        return RowScale(self.n_rows, self.buckets, count, ball, radius, noise)

    @property
    def unit(self) -> float:
        """Steps that a standard deviation of a row has."""
        return self.scale.radius / self.spread

    @property
    def _energy(self) -> float:
        return sum(weight**2 for weight in self.weights)
