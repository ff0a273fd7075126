"""From public numbers to a moments job's tasks, and what clipping does to what comes back.

Columns are seen in standard deviations from their released means. All of it follows from releases
and public constants; nothing here is private.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.ball import BALL, MAX_COEF, MAX_OFFSET, UNIT, Projection
from colonnade.methods.base import Part
from colonnade.methods.column_moments import (
    ColumnMoments,
    MeanSquare,
    label_moments,
    pooled_moments,
    told_of_deviations,
)
from colonnade.methods.moments.rows import MAX_SKETCH
from colonnade.methods.moments.solver.people import MeansSpec, present
from colonnade.methods.moments.spec import MEANS

_DRAWS = 2**14


def told_deviations(
    spec: MeansSpec, part: Part, bodies: Mapping[str, Mapping[str, bytes]]
) -> FloatArray:
    """Return what releases tell of a party's deviations over what its columns were scaled by."""
    mechanism, code = spec.made(part, MEANS)
    noisy = code.decode(bodies[part.party][MEANS])
    count = present(spec, part, bodies)
    return told_of_deviations(noisy, count, mechanism, count=len(part.features))


@dataclass(frozen=True, slots=True)
class Scales:
    """Released means and deviations by party, and the label's, in half ranges."""

    features: Mapping[str, ColumnMoments]
    label_mean: float
    label_deviation: float

    @classmethod
    def of(cls, spec: MeansSpec, bodies: Mapping[str, Mapping[str, bytes]]) -> "Scales":
        """Decode the released moments."""
        features, labels = {}, list[MeanSquare]()
        for part in spec.parts:
            mechanism, code = spec.made(part, MEANS)
            count = present(spec, part, bodies)
            noisy, width = code.decode(bodies[part.party][MEANS]), len(part.features)
            features[part.party] = pooled_moments(noisy, count, mechanism, count=width)
            if spec.sums_label(part):
                labels.append(MeanSquare.of(noisy, count, mechanism, place=width))
        return cls(features, *label_moments(labels))

    def projection(
        self,
        part: Part,
        kept: Sequence[int],
        matrix: FloatArray,
        *,
        radius: float,
        label: FloatArray | None = None,
    ) -> Projection:
        """Return the map of rows to ``matrix`` times their standardised kept features.

        ``radius`` is what the ball stands for; ``label`` are the label's coefficients, for a party
        that holds it (none by default).
        """
        known, places = self.features[part.party], list(kept)
        coef = np.zeros((len(matrix), len(part.features) + part.holds_label))
        offset = np.zeros(len(matrix))
        # Sums in a fixed order: a matrix product's order is the library's own.
        for column, place in enumerate(places):
            scaled = matrix[:, column] / float(known.deviation[place]) / radius
            coef[:, place] = scaled
            offset -= scaled * float(known.mean[place])
        if label is not None:
            coef[:, -1] = label / self.label_deviation / radius
            offset -= coef[:, -1] * self.label_mean
        return Projection(_fixed(coef * UNIT, MAX_COEF), _fixed(offset * GRID * UNIT, MAX_OFFSET))

    def rows(
        self, part: Part, kept: Sequence[int], *, radius: float, label_weight: float
    ) -> Projection:
        """Return the map of rows to kept features and, where it is held, the weighted label."""
        matrix, label = np.eye(len(kept)), None
        if part.holds_label:
            matrix = np.vstack([matrix, np.zeros(len(kept))])
            label = np.zeros(len(matrix))
            label[-1] = label_weight
        return self.projection(part, kept, matrix, radius=radius, label=label)


def _fixed(values: FloatArray, limit: int) -> IntArray:
    return np.rint(np.clip(values, -float(limit), float(limit))).astype(np.int64)


def sums_of_squares(rows: IntArray) -> list[int]:
    """Return the sum of squares of each row, exactly.

    Examples
    --------
    >>> sums_of_squares(np.array([[3, 4], [2**40, 2**40]]))
    [25, 2417851639229258349412352]
    """
    most = max(int(rows.max(initial=0)), -int(rows.min(initial=0)))
    if most**2 * rows.shape[1] < 2**63:
        return [int(row @ row) for row in rows.astype(np.int64)]
    return [sum(value * value for value in row) for row in rows.tolist()]


@dataclass(frozen=True, slots=True)
class Clipped:
    """What scaling into a ball leaves of a row of independent normal coordinates."""

    slope: FloatArray  # of the clipped coordinate on the plain one
    energy: FloatArray  # mean square of the clipped coordinate, the ball having radius 1


@functools.lru_cache(maxsize=256)
def clipped(weights: tuple[float, ...], radius: float) -> Clipped:
    """Return how coordinates with these deviations, over ``radius``, fare in the unit ball.

    By a fixed set of made-up rows: good to a percent, and the same every time.
    """
    made = np.random.Generator(np.random.PCG64(0)).standard_normal((_DRAWS, len(weights)))
    made *= np.array(weights) / radius
    inside = made * np.minimum(1.0, 1.0 / np.sqrt((made**2).sum(axis=1)))[:, None]
    spread = (made**2).mean(axis=0)
    # Slopes on the coordinate before it was divided by the radius.
    slope = (inside * made).mean(axis=0) / spread / radius
    return Clipped(slope, (inside**2).mean(axis=0))


@dataclass(frozen=True, slots=True)
class DecodedSketch:
    """Noisy sketches, ready to be sent to a party, and how to read what comes back."""

    sketches: IntArray  # (n_sketches, dim), what the task carries
    inverse: FloatArray  # turns products with clipped rows into products with rows of ``u``
    energy: FloatArray  # mean square of a clipped row's coordinates, the ball having radius 1

    @classmethod
    def of(cls, decoded: IntArray, clip: float) -> "DecodedSketch":
        """Scale sketches so that a row's norm is clipped at ``clip`` times its root mean square.

        ``J`` has one entry in a column, so a row of ``J' z`` is a column of ``z`` up to its sign:
        what the clip does to rows is what it does to the columns of ``z``.
        """
        z = decoded.astype(np.float64)
        # Squares are summed as integers, so that the sketches do not depend on the machine.
        squares = sums_of_squares(decoded)
        spread = np.array([max(math.sqrt(total / z.shape[1]), 1.0) for total in squares])
        scale = spread * clip * math.sqrt(len(z))
        rows = z / scale[:, None]
        inside = rows * np.minimum(1.0, 1.0 / np.maximum(np.sqrt((rows**2).sum(axis=0)), 1e-12))
        ridge = 1e-9 * (float(np.mean(rows**2)) * rows.shape[1] + 1.0) * np.eye(len(z))
        slope = (inside @ rows.T) @ np.linalg.inv(rows @ rows.T + ridge)
        return cls(
            sketches=_fixed(rows * BALL * UNIT, MAX_SKETCH),
            inverse=np.linalg.inv(slope + 1e-9 * np.eye(len(z))).T * (scale / BALL),
            energy=(inside**2).mean(axis=1),
        )
