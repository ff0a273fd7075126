"""The frozen specification of a moments job, and what follows from it.

Own statistics of a party carry an error of order ``1/n``; an inner product between two parties one
of order ``1/sqrt(n)``. So each party's block is learned almost exactly, compressed to a few
directions, and only the inner products between directions are bought. The rest is arithmetic on
releases.

Rounds, one stage each (screening has several):

means      sums of columns and of their squares, from all parties
label      the label's sketch, from its owner, if no other party holds it
screen     one feature of each wide party a round, along its local path, until ``keep`` are chosen
gram       the Gram matrix of kept features, with the label for those who hold it; from the others
           also the inner products of their features with the label's sketch
share      sketches of a few directions, from all parties
cross      inner products of a party's directions with those of all others

Every pair of parties is seen from both sides. The two errors are independent, so for the same total
price this has about half the variance of one-sided products in a fixed order.

Both sides derive mechanisms, codes and sizes from the same public numbers, never from a task.
"""

import enum
import hashlib
import itertools
import math
from dataclasses import dataclass, replace
from typing import ClassVar

from colonnade.linear.ball import (
    BALL,
    INNER_SENSITIVITY2,
    OFF_DIAGONAL,
    TRIANGLE_SENSITIVITY2,
    triangle_size,
)
from colonnade.linear.sums import moments_mechanism
from colonnade.methods.base import Part
from colonnade.methods.column_moments import moments_code
from colonnade.methods.frank_wolfe.residual import SCORE_SENSITIVITY
from colonnade.methods.frank_wolfe.spec import SELECT_BYTES
from colonnade.methods.groups import moved_columns, moved_or_absent
from colonnade.methods.moments.checks import check_spec
from colonnade.methods.moments.rows import sketch_sensitivity2
from colonnade.methods.problem import Labels, Loss
from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection
from colonnade.sketching.packing import ShareCode
from colonnade.sketching.sparse import Sketch, SparseSketch

# The kinds of release.
MEANS, LABEL, SCREEN, GRAM = "means", "label", "screen", "gram"
MARGINALS, SHARE, CROSS = "marginals", "share", "cross"
KINDS = (MEANS, LABEL, SCREEN, GRAM, MARGINALS, SHARE, CROSS)

NoiseAndCode = tuple[DiscreteGaussian, ShareCode]


class Stage(enum.Enum):
    """What a round is for."""

    MEANS = "means"
    LABEL = "label"
    SCREEN = "screen"
    GRAM = "gram"
    SHARE = "share"
    CROSS = "cross"


@dataclass(frozen=True, slots=True)
class MomentsSpec:
    """A vertical linear model from local moments and a few shared directions."""

    kind: ClassVar[str] = "moments"

    n_rows: int
    parts: tuple[Part, ...]
    mean_units: int
    gram_units: int
    share_units: int  # of a party's directions; 0 if nothing is shared
    cross_units: int  # of a party's inner products with all others
    directions: int  # that a party shares
    probes: int  # that a party's inner products are taken with; at least as many
    sketch_dim: int
    labels: Labels = Labels.SHARED
    loss: Loss = Loss.SQUARED
    label_units: int = 0
    marginal_units: int = 0
    keep: int = 0  # features that a wider party keeps; 0 for all
    screen_units: int = 0  # of one choice
    presence: bool = False  # whether tables say whom a party has: sums are over those people
    # All below is for the coordinator's arithmetic alone: no sensitivity depends on it.
    overlap: tuple[int, ...] = ()  # people at each two parties, 1 and 2, 1 and 3, ..., if counted
    radius: float = 2.4  # of the default L1 ball, in standard deviations
    penalty: float = 0.3  # on the L1 norm, in errors of an inner product between parties
    label_weight: float = 1.5  # of the label in a row's norm
    reach: float = 1.6  # squared radius of the Gram matrix's ball over the expected one
    share_clip: float = 0.6  # of a row of directions, in its root mean square
    probe_clip: float = 1.0
    cross_clip: float = 0.8  # of a row of the others' noisy directions

    def __post_init__(self) -> None:
        check_spec(self)

    @property
    def population(self) -> int:
        """Rows that every party has: the unit of privacy is a record."""
        return self.n_rows

    def shares(self) -> bool:
        """Return whether parties share directions at all."""
        return self.share_units > 0

    def part(self, party: str) -> Part:
        """Return the part of ``party``."""
        for part in self.parts:
            if part.party == party:
                return part
        raise ValueError("the party is not in the job")

    def others(self, part: Part) -> tuple[Part, ...]:
        """Return all parties but one, in order."""
        return tuple(other for other in self.parts if other.party != part.party)

    def in_common(self, party: str) -> dict[str, int]:
        """Return how many people the party has in common with each other one, where counted."""
        return {
            other: count
            for pair, count in self.overlaps().items()
            for other in pair
            if party in pair and other != party
        }

    def overlaps(self) -> dict[tuple[str, str], int]:
        """Return about how many people each two parties have in common, where counted."""
        names = [part.party for part in self.parts]
        return dict(zip(itertools.combinations(names, 2), self.overlap, strict=False))

    def wide(self) -> tuple[Part, ...]:
        """Return the parties that are screened."""
        return tuple(part for part in self.parts if 0 < self.keep < len(part.features))

    def kept(self, part: Part) -> int:
        """Return how many features of the party are left after screening."""
        return min(self.keep or len(part.features), len(part.features))

    def n_columns(self, part: Part) -> int:
        """Return how many columns a projection of the party's has: features, and label if held."""
        return len(part.features) + part.holds_label

    def n_directions(self, part: Part) -> int:
        """Return how many directions the party shares: never more than it keeps features."""
        return min(self.directions, self.kept(part))

    def n_probes(self, part: Part) -> int:
        """Return how many directions the party's inner products are taken with."""
        return min(self.probes, self.kept(part))

    def n_others(self, part: Part) -> int:
        """Return how many directions all other parties share."""
        return sum(map(self.n_directions, self.others(part)))

    def n_gram(self, part: Part) -> int:
        """Return the number of rows of the party's Gram matrix."""
        return self.kept(part) + part.holds_label

    def stages(self) -> tuple[Stage, ...]:
        """Return what each round is for."""
        label = (Stage.LABEL,) if self.labels is Labels.SKETCHED else ()
        screen = (Stage.SCREEN,) * (self.keep if self.wide() else 0)
        share = (Stage.SHARE, Stage.CROSS) if self.shares() else ()
        return (Stage.MEANS, *label, *screen, Stage.GRAM, *share)

    @property
    def rounds(self) -> int:
        """Rounds after the first."""
        return len(self.stages()) - 1

    def round_kinds(self, round_: int, part: Part) -> tuple[str, ...]:
        """Return the kinds that the party releases in a round."""
        stage = self.stages()[round_]
        if stage is Stage.MEANS:
            return (MEANS,)
        if stage is Stage.LABEL:
            return (LABEL,) if part.holds_label else ()
        if stage is Stage.SCREEN:
            return (SCREEN,) if part in self.wide() else ()
        if stage is Stage.GRAM:
            return (GRAM,) if part.holds_label else (GRAM, MARGINALS)
        return (SHARE,) if stage is Stage.SHARE else (CROSS,)

    def sketch(self, job: str) -> Sketch:
        """Return the job's public matrix: its seed is a digest of the job's name."""
        seed = hashlib.sha256(b"colonnade moments\0" + job.encode()).digest()
        return SparseSketch(seed, self.n_rows, self.sketch_dim, 1)

    def sums_label(self, part: Part) -> bool:
        """Return whether the party's means include the label: one party's do."""
        return part.holds_label and (
            self.labels is Labels.SKETCHED or part.party == self.parts[0].party
        )

    def selection(self) -> SignedSelection:
        """Return the mechanism of a choice in screening."""
        return SignedSelection.within(self.screen_units, sensitivity=SCORE_SENSITIVITY)

    def made(self, part: Part, kind: str) -> NoiseAndCode:
        """Return mechanism and code of a release of numbers.

        Privacy: sensitivities are those of `linear.ball`, `methods.moments.rows` and, for means, of
        `linear.sums`.
        """
        if kind == MEANS:
            summed = self.sums_label(part)
            moved = moved_columns(part.features, part.groups) + summed
            count = len(part.features) + summed + self.presence
            moved = moved_or_absent(count, moved) if self.presence else moved
            noise = moments_mechanism(moved, self.mean_units)
            return noise, moments_code(count, self.n_rows, noise)
        if kind == GRAM:
            size = triangle_size(self.n_gram(part))
            noise = DiscreteGaussian.within(self.gram_units, l2_sensitivity2=TRIANGLE_SENSITIVITY2)
            return noise, ShareCode.bounded(size, OFF_DIAGONAL * self.n_rows * BALL**2, noise)
        if kind == LABEL:
            return self._sketched(1, self.label_units)
        if kind == SHARE:
            return self._sketched(self.n_directions(part), self.share_units)
        if kind == MARGINALS:
            return self._inner(self.kept(part), self.marginal_units)
        if kind == CROSS:
            return self._inner(self.n_probes(part) * self.n_others(part), self.cross_units)
        raise ValueError("the job has no numbers of that kind")

    def _sketched(self, count: int, units: int) -> NoiseAndCode:
        sketch = self.sketch("")  # sizes and norms do not depend on the job's name
        noise = DiscreteGaussian.within(units, l2_sensitivity2=sketch_sensitivity2(sketch))
        code = ShareCode.of(sketch, self.n_rows, noise)
        return noise, replace(code, dim=count * sketch.dim)

    def _inner(self, count: int, units: int) -> NoiseAndCode:
        noise = DiscreteGaussian.within(units, l2_sensitivity2=INNER_SENSITIVITY2)
        return noise, ShareCode.bounded(count, self.n_rows * BALL**2, noise)

    def max_releases(self, party: str) -> dict[str, int]:
        """Return how many releases of each kind the job asks of ``party``."""
        counts: dict[str, int] = {}
        for round_ in range(len(self.stages())):
            for kind in self.round_kinds(round_, self.part(party)):
                counts[kind] = counts.get(kind, 0) + 1
        return counts

    def cost(self, party: str, kind: str) -> int:
        """Return the price of one release, in units."""
        if kind == SCREEN:
            return self.selection().cost
        return self.made(self.part(party), kind)[0].cost

    def units_by_kind(self, party: str) -> dict[str, int]:
        """Return the most that the releases of each kind can ever cost ``party``."""
        counts = self.max_releases(party).items()
        units = {kind: count * self.cost(party, kind) for kind, count in counts}
        return dict.fromkeys(KINDS, 0) | units

    def max_units(self, party: str) -> int:
        """Return the most that the job can ever cost ``party``: what it sets aside."""
        return sum(self.units_by_kind(party).values())

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the size of one body of ``kind`` from ``party``."""
        if kind == SCREEN:
            return SELECT_BYTES
        return self.made(self.part(party), kind)[1].n_bytes

    def task_entries(self, party: str) -> int:
        """Return the most numbers that a task for ``party`` carries."""
        part = self.part(party)
        rows = self.n_columns(part) + 1
        label = 0 if part.holds_label else self.sketch_dim
        screen = self.sketch_dim + 2 * len(part.features) if part in self.wide() else 0
        cross = self.n_probes(part) * rows + self.n_others(part) * self.sketch_dim
        return max(self.n_gram(part) * rows + label, screen, cross if self.shares() else 0)

    def ball(self, part: Part) -> float:
        """Return the radius of the Gram matrix's ball, in standard deviations."""
        label = self.label_weight**2 if part.holds_label else 0.0
        return math.sqrt(self.reach * (self.kept(part) + label))
