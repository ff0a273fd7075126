"""The frozen specification of a vertical Frank-Wolfe job, and what follows from it.

Both sides derive mechanisms, codes and sizes from the same public numbers; nothing that shapes
noise or sensitivity is ever sent along with a task.
"""

import enum
import hashlib
from dataclasses import dataclass

from colonnade.optim.dense_sketch import HadamardSketch
from colonnade.optim.sketch import Sketch, SparseSketch
from colonnade.optim.vertical.residual import SCORE_SENSITIVITY
from colonnade.optim.vertical.shares import ShareCode, share_mechanism
from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection

# A signed choice: the feature's number times two, plus one for minus.
SELECT_BYTES = 4


class Labels(enum.Enum):
    """Who holds the label."""

    SHARED = "shared"
    SKETCHED = "sketched"


class Loss(enum.Enum):
    """What is minimised; logistic is its second-order surrogate, least squares on labels +-2."""

    SQUARED = "squared"
    LOGISTIC = "logistic"


class Sampling(enum.Enum):
    """Which parties take part in a round."""

    ALL = "all"
    SERIAL = "serial"
    NICE = "nice"
    GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Block:
    """One party's part: its features in order, its L1 radius, how many features it may share."""

    party: str
    features: tuple[str, ...]
    radius: float
    shares: int
    holds_label: bool
    probability: float = 1.0  # of taking part, for given sampling


@dataclass(frozen=True, slots=True)
class FrankWolfeSpec:
    """A vertical LASSO by private block-coordinate Frank-Wolfe (Lou and Cheung 2018)."""

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
    sampling: Sampling = Sampling.ALL
    parties_per_round: int = 1  # for nice sampling
    features_per_round: int = 0  # candidates sampled within a party; 0 takes all
    dense_sketch: bool = False  # Hadamard instead of sparse
    prior: float = 0.03  # on squared correlation between blocks

    def __post_init__(self) -> None:
        names = [block.party for block in self.blocks]
        if not names or len(set(names)) != len(names):
            raise ValueError("a job needs parties with different names")
        if self.n_rows < 1 or self.rounds < 1 or self.select_units < 1:
            raise ValueError("rows, rounds and the price of a selection must be positive")
        if any(not block.features or not 0 < block.radius < 2**16 for block in self.blocks):
            raise ValueError("every party needs features and a radius between 0 and 65536")
        if any(block.shares < 0 for block in self.blocks):
            raise ValueError("a share count cannot be negative")
        if any(block.shares for block in self.blocks) and self.share_units < 1:
            raise ValueError("a share needs a price")
        owners = sum(block.holds_label for block in self.blocks)
        if self.labels is Labels.SHARED and owners != len(names):
            raise ValueError("with shared labels every party holds the label")
        if self.labels is Labels.SKETCHED and (owners != 1 or self.label_units < 1):
            raise ValueError("with sketched labels one party holds the label and its share a price")

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

    def selection(self) -> SignedSelection:
        """Return the mechanism of a selection."""
        return SignedSelection.within(self.select_units, sensitivity=SCORE_SENSITIVITY)

    def share(self, sketch: Sketch) -> tuple[DiscreteGaussian, ShareCode]:
        """Return mechanism and code of a shared feature."""
        mechanism = share_mechanism(sketch, self.share_units)
        return mechanism, ShareCode.of(sketch, self.n_rows, mechanism)

    def label_share(self, sketch: Sketch) -> tuple[DiscreteGaussian, ShareCode]:
        """Return mechanism and code of the shared label."""
        mechanism = share_mechanism(sketch, self.label_units)
        return mechanism, ShareCode.of(sketch, self.n_rows, mechanism)

    def max_units(self, party: str) -> int:
        """Return the most that the job can ever cost ``party``: what it sets aside."""
        block = self.block(party)
        label = self.labels is Labels.SKETCHED and block.holds_label
        asked = self.rounds // len(self.blocks) + 1 if self.sampling is Sampling.SERIAL else None
        selections = min(self.rounds, asked) if asked else self.rounds
        return (
            selections * self.select_units
            + min(block.shares, len(block.features)) * self.share_units
            + label * self.label_units
        )

    def least_probability(self) -> float:
        """Return the least probability with which a party takes part in a round."""
        parties = len(self.blocks)
        party = {
            Sampling.ALL: 1.0,
            Sampling.SERIAL: 1.0 / parties,
            Sampling.NICE: self.parties_per_round / parties,
            Sampling.GIVEN: min(block.probability for block in self.blocks),
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
