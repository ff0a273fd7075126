"""The frozen specification of a sealed moments job, and what follows from it.

A product between columns of two parties is bought under encryption: one party seals its columns,
the other multiplies them with its own and adds noise, the first opens the sums and adds noise too.
So it has an error of order ``1/n``, as a party's own products have, where noise on rows leaves one
of order ``1/sqrt(n)``. Experimental, and only between parties that trust each other to follow the
protocol (`charges`).

Rounds, one stage each; those in brackets only if a party has more features than are kept:

means      sums of columns and of their squares, from all parties
[label     the label, sealed, from its owner; the Gram matrix of all features, from wide parties]
[products  of all features with the label, from wide parties]
[screen    these products, opened, from the label's owner]
seal       the Gram matrix of kept features (with the label, its owner's); kept columns, sealed,
           from all parties but the last in turn (`rounds.turns`: the one with most columns)
reply      products with the columns of every party before it, from all parties but the first
open       these products, opened, from all parties but the last

Both sides derive mechanisms, codes and sizes from the same public numbers, never from a task.
"""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

from colonnade.linear.ball import BALL, OFF_DIAGONAL, TRIANGLE_SENSITIVITY2, triangle_size
from colonnade.linear.sums import moments_mechanism
from colonnade.methods.base import Part
from colonnade.methods.column_moments import moments_code
from colonnade.methods.groups import moved_columns, moved_or_absent
from colonnade.methods.moments.spec import NoiseAndCode
from colonnade.methods.problem import Labels, Loss
from colonnade.methods.sealed import products
from colonnade.methods.sealed.charges import Product
from colonnade.methods.sealed.checks import check_spec
from colonnade.methods.sealed.kinds import (
    GRAM,
    LABEL,
    MEANS,
    OPENINGS,
    REPLIES,
    SEALED,
    WIDE,
    SealedStage,
    parsed,
)
from colonnade.methods.sealed.packing import Layout
from colonnade.methods.sealed.products import Prices
from colonnade.methods.sealed.rounds import key_groups, round_kinds
from colonnade.methods.sealed.rows import RowShape
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.ring_noise import SealedOpening, SealedReply
from colonnade.sketching.packing import ShareCode


@dataclass(frozen=True, slots=True)
class SealedSpec:
    """A vertical linear model from local moments and products under encryption."""

    kind: ClassVar[str] = "sealed"
    labels: ClassVar[Labels] = Labels.SKETCHED  # one party holds it
    sketch_dim: ClassVar[int] = 0  # nothing is sketched

    n_rows: int
    parts: tuple[Part, ...]  # one holds the label
    prices: tuple[Prices, ...]
    mean_units: int
    buckets: int = 3 << 14  # that rows are summed into, if there are more
    keep: int = 0  # features that a wider party keeps; 0 for all
    groups: int = 1  # of a party's columns, at most, each under a key of its own
    label_lanes: int = 1  # columns that one reply to the sealed label holds
    loss: Loss = Loss.SQUARED
    label_weight: float = 1.5  # of the label in a row's norm
    reach: float = 1.6  # squared radius of a row's ball over the expected square
    wide_reach: float = 1.3  # the same for the rows of all features
    label_reach: float = 4.0  # the same for the label alone
    bucket_reach: float = 2.2  # the same for a bucket of rows
    presence: bool = False  # whether tables say whom a party has: sums are over those people
    shields: tuple[int, ...] = ()  # price of each party's, of its hostile account; 0 for none
    # All below is for the coordinator's arithmetic alone: no sensitivity depends on it.
    overlap: tuple[int, ...] = ()  # people at each two parties, 1 and 2, 1 and 3, ..., if counted
    radius: float = 2.4  # of the default L1 ball, in standard deviations
    penalty: float = 0.6  # on the L1 norm, in errors of a product between parties

    def __post_init__(self) -> None:
        check_spec(self)

    # -- who ------------------------------------------------------------------------------------

    @property
    def population(self) -> int:
        """Records that every party has, which the guarantee is about."""
        return self.n_rows

    @property
    def owner(self) -> Part:
        """The party that holds the label."""
        return next(part for part in self.parts if part.holds_label)

    def part(self, party: str) -> Part:
        """Return the part of ``party``."""
        return self.parts[self.place(party)]

    def place(self, party: str) -> int:
        """Return the place of ``party`` in the job's order."""
        for place, part in enumerate(self.parts):
            if part.party == party:
                return place
        raise ValueError("the party is not in the job")

    def wide(self) -> tuple[Part, ...]:
        """Return the parties that are screened."""
        return tuple(part for part in self.parts if 0 < self.keep < len(part.features))

    def multipliers_of_label(self) -> tuple[Part, ...]:
        """Return the wide parties that need the label's owner to know their products with it."""
        return tuple(part for part in self.wide() if not part.holds_label)

    def peers(self, part: Part) -> tuple[str, ...]:
        """Return the parties with which a party exchanges ciphertexts: all others."""
        return tuple(other.party for other in self.parts if other.party != part.party)

    def kept(self, part: Part) -> int:
        """Return how many features of the party are left after screening."""
        return min(self.keep or len(part.features), len(part.features))

    def n_gram(self, part: Part) -> int:
        """Return the columns of the party's kept Gram matrix, which are also what it seals."""
        return self.kept(part) + part.holds_label

    def n_wide(self, part: Part) -> int:
        """Return the columns of the party's wide Gram matrix."""
        return len(part.features) + part.holds_label

    def n_sealed(self, part: Part) -> int:
        """Return the columns of the party, with its label, that meet peers under encryption."""
        return self.n_wide(part) if part in self.wide() else self.n_gram(part)

    # -- rounds -----------------------------------------------------------------------------------

    def stages(self) -> tuple[SealedStage, ...]:
        """Return what each round is for."""
        wide = (SealedStage.LABEL,) if self.wide() else ()
        screen = (SealedStage.PRODUCTS, SealedStage.SCREEN) if self.multipliers_of_label() else ()
        return (
            SealedStage.MEANS,
            *wide,
            *screen,
            SealedStage.SEAL,
            SealedStage.REPLY,
            SealedStage.OPEN,
        )

    @property
    def rounds(self) -> int:
        """Rounds after the first."""
        return len(self.stages()) - 1

    def round_of(self, stage: SealedStage) -> int:
        """Return the round of a stage."""
        return self.stages().index(stage)

    def round_kinds(self, round_: int, part: Part) -> tuple[str, ...]:
        """Return the kinds that the party releases in a round."""
        return round_kinds(self, self.stages()[round_], part)

    # -- rows -------------------------------------------------------------------------------------

    def seed(self, job: str) -> bytes:
        """Return the seed of the job's public signs: a digest of its name."""
        return hashlib.sha256(b"colonnade sealed\0" + job.encode()).digest()

    @property
    def summed(self) -> bool:
        """Whether rows are summed into buckets."""
        return self.n_rows > self.buckets

    def rows(self, base: str, part: Part) -> RowShape:
        """Return the shape of the rows that go into a release of the party's.

        Those of a Gram matrix are the same as those that are sealed or multiplied.
        """
        return products.row_shape(self, base, part)

    def shield(self, part: Part) -> DiscreteGaussian | None:
        """Return the noise that is put on a party's buckets before they are sealed or multiplied.

        Privacy: a replaced row lies within the ball before and after and in one bucket, which it
        moves by at most ``2 BALL``. What is sealed and multiplied is then a function of noisy
        buckets, whatever peers do: this price holds against everybody, and the hostile account
        pays it.
        """
        units = self.shields[self.place(part.party)] if self.shields else 0
        return DiscreteGaussian.within(units, l2_sensitivity2=4 * BALL**2) if units else None

    def layout(self, base: str, part: Part) -> Layout:
        """Return how the columns that a party seals lie in polynomials."""
        scale = self.rows(base, part).scale
        if base == LABEL:
            return Layout(scale.rows, 1, lanes=self.label_lanes)
        return Layout(scale.rows, scale.columns, groups=key_groups(self, part))

    # -- products ---------------------------------------------------------------------------------

    def product(self, kind: str, part: Part) -> Product:
        """Return the product that a reply or an opening of the party belongs to."""
        return products.product(self, kind, part)

    def sigma2(self, kind: str, part: Part) -> int:
        """Return the variance of the noise of a reply or an opening, in steps."""
        return products.sigma2(self, kind, part)

    def mechanism(self, kind: str, part: Part) -> SealedReply | SealedOpening:
        """Return the mechanism of a reply or an opening."""
        return products.mechanism(self, kind, part)

    def opening_code(self, kind: str, part: Part) -> ShareCode:
        """Return how opened numbers cross the wire."""
        return products.opening_code(self, kind, part)

    def made(self, part: Part, kind: str) -> NoiseAndCode:
        """Return mechanism and code of a party's own statistics.

        Privacy: sensitivities are those of `linear.ball` and, for means, of `linear.sums`.
        """
        prices = self.prices[self.place(part.party)]
        if kind == MEANS:
            moved = moved_columns(part.features, part.groups) + part.holds_label
            count = len(part.features) + part.holds_label + self.presence
            moved = moved_or_absent(count, moved) if self.presence else moved
            noise = moments_mechanism(moved, self.mean_units)
            return noise, moments_code(count, self.n_rows, noise)
        wide = kind == WIDE
        if not wide and kind != GRAM:
            raise ValueError("the job has no numbers of that kind")
        size = triangle_size(self.n_wide(part) if wide else self.n_gram(part))
        units = prices.wide if wide else prices.gram
        noise = DiscreteGaussian.within(units, l2_sensitivity2=TRIANGLE_SENSITIVITY2)
        return noise, ShareCode.bounded(size, OFF_DIAGONAL * self.n_rows * BALL**2, noise)

    # -- prices and sizes -------------------------------------------------------------------------

    def kinds(self, part: Part) -> tuple[str, ...]:
        """Return all kinds of release of a party, in the order of rounds."""
        rounds = range(len(self.stages()))
        return tuple(kind for round_ in rounds for kind in self.round_kinds(round_, part))

    def max_releases(self, party: str) -> dict[str, int]:
        """Return how many releases of each kind the job asks of ``party``: one."""
        return dict.fromkeys(self.kinds(self.part(party)), 1)

    def cost(self, party: str, kind: str) -> int:
        """Return the price of a release, in units; that of a ciphertext is 0."""
        part, base = self.part(party), parsed(kind)[0]
        if base in SEALED:
            return 0
        if base in REPLIES or base in OPENINGS:
            return self.mechanism(kind, part).cost
        return self.made(part, kind)[0].cost

    def units_by_kind(self, party: str) -> dict[str, int]:
        """Return what the releases of each kind cost ``party``, whomever they are for."""
        units = dict[str, int]()
        for kind in self.kinds(self.part(party)):
            base = parsed(kind)[0]
            units[base] = units.get(base, 0) + self.cost(party, kind)
        return units

    def max_units(self, party: str) -> int:
        """Return the most that the job can ever cost ``party``: what it sets aside."""
        return sum(self.units_by_kind(party).values())

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one body of ``kind`` from ``party``."""
        part, (base, place) = self.part(party), parsed(kind)
        if base in SEALED:
            return self.layout(base, part).sealed_bytes()[place]
        if base in REPLIES:
            product = self.product(kind, part)
            return product.layout.reply_bytes(product.multiplied.columns)
        if base in OPENINGS:
            return self.opening_code(kind, part).n_bytes
        return self.made(part, kind)[1].n_bytes

    def task_entries(self, party: str) -> int:
        """Return the most numbers that a task for ``party`` carries, besides relayed bodies."""
        part = self.part(party)
        columns = self.n_wide(part)
        outputs = columns + 1 if part in self.wide() else self.n_gram(part) + 1
        return outputs * (columns + 1)

    def sums_label(self, part: Part) -> bool:
        """Return whether the party's means include the label: its owner's do."""
        return part.holds_label
