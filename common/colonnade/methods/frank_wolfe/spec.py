"""The frozen specification of a vertical Frank-Wolfe job, and what follows from it.

Both sides derive mechanisms, codes and sizes from the same public numbers; nothing that shapes
noise or sensitivity is ever sent along with a task.

Round 0 is the opening: sums of columns for the intercept, the label's sketch, or nothing. Rounds
``1 .. rounds`` are the steps.
"""

import enum
import hashlib
import math
from dataclasses import dataclass
from typing import ClassVar

from colonnade.linear.sums import moments_mechanism
from colonnade.methods.base import payload
from colonnade.methods.column_moments import moments_code
from colonnade.methods.frank_wolfe.residual import SCORE_SENSITIVITY
from colonnade.methods.groups import check_groups, moved_columns
from colonnade.methods.problem import Labels, Loss
from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection
from colonnade.sketching.dense import HadamardSketch
from colonnade.sketching.packing import ShareCode, share_mechanism
from colonnade.sketching.sparse import Sketch, SparseSketch

# A signed choice: the feature's number times two, plus one for minus.
SELECT_BYTES = 4

# A selection before anything is sketched costs this many times less than one after.
LOCAL_DISCOUNT = 4

# The kinds of release.
MEANS, LABEL, SELECT, SHARE = "means", "label", "select", "share"


class PartySampling(enum.Enum):
    """Which parties take part in a round."""

    ALL = "all"
    SERIAL = "serial"
    NICE = "nice"
    GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Block:
    """One party's part: its features in order, its L1 radius, how many features it may share.

    In a job with means the radius is in standard deviations: of the label (for the logistic loss,
    of half the logit) for each of the party's features, on average. Without means it is in half
    ranges of the declared bounds.
    """

    party: str
    features: tuple[str, ...]
    radius: float
    shares: int
    holds_label: bool
    probability: float = 1.0  # of taking part, for given sampling
    groups: tuple[str, ...] = ()  # of the features; () for no groups

    def __post_init__(self) -> None:
        check_groups(self.features, self.groups)


@dataclass(frozen=True, slots=True)
class FrankWolfeSpec:
    """A vertical LASSO by private block-coordinate Frank-Wolfe (Lou and Cheung 2018)."""

    kind: ClassVar[str] = "frank-wolfe"

    n_rows: int
    blocks: tuple[Block, ...]
    rounds: int
    sketch_dim: int
    sketch_entries: int
    select_units: int
    share_units: int
    label_units: int
    labels: Labels = Labels.SHARED
    loss: Loss = Loss.SQUARED
    sampling: PartySampling = PartySampling.ALL
    parties_per_round: int = 1  # for nice sampling
    features_per_round: int = 0  # candidates sampled within a party; 0 takes all
    dense_sketch: bool = False  # Hadamard instead of sparse
    prior: float = 0.03  # on squared correlation between blocks
    mean_units: int = 0  # price of a party's release of means; 0 for no intercept
    # With means the clips are in standard deviations: of the residual, and of a shared column.
    # Without, columns are shared as they are and the residual's clip is in half ranges.
    clip: float = 1.0
    share_clip: float = 1.0
    local_rounds: int = 0  # of the rounds, how many come before any sharing

    def __post_init__(self) -> None:
        names = [block.party for block in self.blocks]
        if not names or len(set(names)) != len(names):
            raise ValueError("a job needs parties with different names")
        if self.n_rows < 1 or self.rounds < 1 or self.select_units < 1:
            raise ValueError("rows, rounds and the price of a selection must be positive")
        if any(not block.features or not 0 < block.radius < 2**16 for block in self.blocks):
            raise ValueError("every party needs features and a radius between 0 and 65536")
        if any(len(set(block.features)) != len(block.features) for block in self.blocks):
            raise ValueError("the features of a party must have different names")
        if any(block.shares < 0 for block in self.blocks) or self.mean_units < 0:
            raise ValueError("a share count or a price cannot be negative")
        if any(block.shares for block in self.blocks) and self.share_units < 1:
            raise ValueError("a share needs a price")
        if not (0.01 <= self.clip <= 100 and 0.01 <= self.share_clip <= 100):
            raise ValueError("a clip must lie between 0.01 and 100")
        if not 0 < self.prior < math.inf:
            raise ValueError("the prior must be positive")
        if not 0 <= self.local_rounds < self.rounds:
            raise ValueError("the local rounds must leave a round for the rest")
        self._check_labels()
        self._check_sampling()
        self.selection(1)  # a price too small for any noise is refused here
        for block in self.blocks:
            payload(self, block.party)  # of the other kinds too, and an impossible sketch

    def _check_labels(self) -> None:
        owners = sum(block.holds_label for block in self.blocks)
        if self.labels is Labels.SHARED and owners != len(self.blocks):
            raise ValueError("with shared labels every party holds the label")
        if self.labels is Labels.SKETCHED and (owners != 1 or self.label_units < 1):
            raise ValueError("with sketched labels one party holds the label and its share a price")

    def _check_sampling(self) -> None:
        if not 1 <= self.parties_per_round <= len(self.blocks) or self.features_per_round < 0:
            raise ValueError("a round must sample between one party and all, and no negative part")
        if not all(0 < block.probability <= 1 for block in self.blocks):
            raise ValueError("a probability must lie above 0 and not above 1")

    @property
    def population(self) -> int:
        """Rows that every party has: the unit of privacy is a record."""
        return self.n_rows

    @property
    def parts(self) -> tuple[Block, ...]:
        """The parties' parts."""
        return self.blocks

    def block(self, party: str) -> Block:
        """Return the part of ``party``."""
        for block in self.blocks:
            if block.party == party:
                return block
        raise ValueError("the party is not in the job")

    def sketch(self, job: str) -> Sketch:
        """Return the job's public matrix: its seed is a digest of the job's name."""
        seed = hashlib.sha256(b"colonnade sketch\0" + job.encode()).digest()
        if self.dense_sketch:
            return HadamardSketch(seed, self.n_rows, self.sketch_dim)
        return SparseSketch(seed, self.n_rows, self.sketch_dim, self.sketch_entries)

    def select_price(self, round_: int) -> int:
        """Return the most that a selection in ``round_`` costs; local ones have less to see past.

        Without sketches in it the residual is several times smaller, and so is its clip.
        """
        exact = self.is_local(round_) and self.labels is Labels.SHARED
        return self.select_units // LOCAL_DISCOUNT if exact else self.select_units

    def is_local(self, round_: int) -> bool:
        """Return whether a round comes before any sharing."""
        return round_ <= self.local_rounds

    def selection(self, round_: int) -> SignedSelection:
        """Return the mechanism of a selection in ``round_``."""
        return SignedSelection.within(self.select_price(round_), sensitivity=SCORE_SENSITIVITY)

    def share(self, sketch: Sketch) -> tuple[DiscreteGaussian, ShareCode]:
        """Return mechanism and code of a shared feature."""
        mechanism = share_mechanism(sketch, self.share_units)
        return mechanism, ShareCode.of(sketch, self.n_rows, mechanism)

    def label_share(self, sketch: Sketch) -> tuple[DiscreteGaussian, ShareCode]:
        """Return mechanism and code of the shared label."""
        mechanism = share_mechanism(sketch, self.label_units)
        return mechanism, ShareCode.of(sketch, self.n_rows, mechanism)

    def releases_label(self, block: Block) -> bool:
        """Return whether the party opens with the label's sketch."""
        return self.labels is Labels.SKETCHED and block.holds_label

    def sums_label(self, block: Block) -> bool:
        """Return whether the party's means include the label: one party's do."""
        return block.holds_label and (
            self.labels is Labels.SKETCHED or block.party == self.blocks[0].party
        )

    def means(self, block: Block) -> tuple[DiscreteGaussian, ShareCode]:
        """Return mechanism and code of the party's moments, for a job with an intercept."""
        summed = self.sums_label(block)
        moved = moved_columns(block.features, block.groups) + summed
        mechanism = moments_mechanism(moved, self.mean_units)
        return mechanism, moments_code(len(block.features) + summed, self.n_rows, mechanism)

    def opening(self, block: Block) -> tuple[str, ...]:
        """Return the kinds that the party releases in round 0."""
        means = (MEANS,) if self.mean_units else ()
        return (*means, LABEL) if self.releases_label(block) else means

    def choosing_rounds(self, party: str) -> range:
        """Return the most rounds in which ``party`` is asked to choose."""
        if self.sampling is not PartySampling.SERIAL:
            return range(1, self.rounds + 1)
        place = [block.party for block in self.blocks].index(party)
        return range(1 + place, self.rounds + 1, len(self.blocks))

    def max_releases(self, party: str) -> dict[str, int]:
        """Return how many releases of each kind the job can ever ask of ``party``."""
        block, selections = self.block(party), len(self.choosing_rounds(party))
        shares = min(block.shares, len(block.features), selections)
        return dict.fromkeys(self.opening(block), 1) | {SELECT: selections, SHARE: shares}

    def units_by_kind(self, party: str) -> dict[str, int]:
        """Return the most that the releases of each kind can ever cost ``party``."""
        price = {MEANS: self.mean_units, LABEL: self.label_units, SHARE: self.share_units}
        counts = self.max_releases(party)
        units = {kind: price[kind] * counts.get(kind, 0) for kind in price}
        return units | {SELECT: sum(map(self.select_price, self.choosing_rounds(party)))}

    def max_units(self, party: str) -> int:
        """Return the most that the job can ever cost ``party``: what it sets aside."""
        return sum(self.units_by_kind(party).values())

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the size of one body of ``kind`` from ``party``: exact, and known beforehand."""
        if kind == SELECT:
            return SELECT_BYTES
        if kind == MEANS:
            return self.means(self.block(party))[1].n_bytes
        sketch = self.sketch("")  # sizes do not depend on the job's name
        if kind == SHARE:
            return self.share(sketch)[1].n_bytes
        if kind == LABEL:
            return self.label_share(sketch)[1].n_bytes
        raise ValueError("the job has no release of that kind")

    def task_entries(self, party: str) -> int:
        """Return the most numbers that a task for ``party`` carries."""
        return self.sketch_dim + 2 * len(self.block(party).features)

    def inner_radius(self, block: Block) -> float:
        """Return the radius for labels of +-1: those of the logistic surrogate are +-2."""
        return block.radius / self.output_scale

    @property
    def output_scale(self) -> float:
        """What turns the solver's coefficients into those of the loss: logits for the logistic."""
        return 2.0 if self.loss is Loss.LOGISTIC else 1.0

    def least_probability(self) -> float:
        """Return the least probability with which a party takes part in a round."""
        parties = len(self.blocks)
        party = {
            PartySampling.ALL: 1.0,
            PartySampling.SERIAL: 1.0 / parties,
            PartySampling.NICE: self.parties_per_round / parties,
            PartySampling.GIVEN: min(block.probability for block in self.blocks),
        }[self.sampling]
        if not self.features_per_round:
            return party
        widest = max(len(block.features) for block in self.blocks)
        return party * min(1.0, self.features_per_round / widest)


def encode_choice(feature: int, sign: int) -> bytes:
    """Encode a signed feature in a fixed number of bytes."""
    return (2 * feature + (sign < 0)).to_bytes(SELECT_BYTES, "little")


def decode_choice(body: bytes, n_features: int) -> tuple[int, int]:
    """Return feature and sign; `ValueError` if they cannot be."""
    code = int.from_bytes(body, "little")
    if len(body) != SELECT_BYTES or code >= 2 * n_features:
        raise ValueError("a selection names no feature of its party")
    return code // 2, -1 if code % 2 else 1
