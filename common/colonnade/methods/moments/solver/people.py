"""How many people parties have, alone and two at a time, in a job that knows who is present.

A party's own number comes with its means. That of two parties together would cost a moments job far
more than it is worth (an inner product between parties errs by as many people as the square root of
all, and more), so it is the one that an alignment has told with its dummies, if the job's author
gave it; else absences are taken to have nothing to do with each other.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID
from colonnade.methods.base import Part
from colonnade.methods.moments.spec import MEANS, NoiseAndCode

_HALVINGS = 60
_MAX_PEOPLE = 1000.0  # times the rows: nobody in common


class MeansSpec(Protocol):
    """What a specification says of means and of who is present: moments, sealed or not."""

    @property
    def n_rows(self) -> int:
        """Rows of every table."""

    @property
    def parts(self) -> Sequence[Part]:
        """The parties' parts."""

    @property
    def presence(self) -> bool:
        """Whether tables say whom a party has."""

    @property
    def overlap(self) -> Sequence[int]:
        """People at each two parties, if an alignment counted them."""

    def made(self, part: Part, kind: str) -> NoiseAndCode:
        """Return mechanism and code of a release of numbers."""

    def sums_label(self, part: Part) -> bool:
        """Return whether the party's means include the label."""


def present(spec: MeansSpec, part: Part, bodies: Mapping[str, Mapping[str, bytes]]) -> float:
    """Return how many people a party has: all rows, or the noisy count in its means."""
    if not spec.presence:
        return float(spec.n_rows)
    noisy = spec.made(part, MEANS)[1].decode(bodies[part.party][MEANS])
    # Presence is the last of the columns; its squares tell the same number with other noise.
    found = (int(noisy[noisy.size // 2 - 1]) + int(noisy[-1])) / (2.0 * GRID)
    return min(max(found, 1.0), float(spec.n_rows))


def people(spec: MeansSpec, bodies: Mapping[str, Mapping[str, bytes]]) -> FloatArray:
    """Return how many people each two parties have in common; on the diagonal, each one's own."""
    own = np.array([present(spec, part, bodies) for part in spec.parts])
    if not spec.presence:
        return np.full((own.size, own.size), float(spec.n_rows))
    joint = np.diag(own)
    everybody = _everybody(own, float(spec.n_rows))
    pairs = itertools.combinations(range(own.size), 2)
    for place, (i, j) in enumerate(pairs):
        told = float(spec.overlap[place]) if spec.overlap else own[i] * own[j] / everybody
        joint[i, j] = joint[j, i] = min(max(told, 1.0), own[i], own[j])
    return joint


def _everybody(own: FloatArray, n_rows: float) -> float:
    """Return of how many people rows are those that at least one party has, if by chance.

    Solves ``n_rows = M (1 - prod(1 - own / M))`` for ``M`` by halving; the right side grows with M.
    """
    low, high = float(max(n_rows, own.max())), _MAX_PEOPLE * n_rows
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if middle * (1.0 - float(np.prod(1.0 - own / middle))) < n_rows:
            low = middle
        else:
            high = middle
    return low
