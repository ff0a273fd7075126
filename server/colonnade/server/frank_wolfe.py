"""The coordinator's side of private block-coordinate Frank-Wolfe: pure steps over releases.

Everything here is a function of public numbers and of what parties released, so nothing of it is
private. The iterate is kept in fixed point; the same releases give the same iterate, bit for bit.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.optim.sketch import Sketch
from colonnade.optim.vertical.residual import CLIP_UNIT, COEF_UNIT, Q_UNIT, WEIGHT_UNIT, Public
from colonnade.optim.vertical.spec import Block, FrankWolfeSpec, Labels, Sampling, decode_choice
from colonnade.privacy.mechanisms import DiscreteGaussian

# The clip is the label's range plus this many standard deviations of the cross term.
_CLIP_DEVIATIONS = 2.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What one party released in a round: its choice and, at need, the chosen feature's sketch."""

    select: bytes
    share: bytes | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What one party is asked in a round."""

    round: int
    public: Public
    candidates: tuple[int, ...]  # empty for all that the party may choose from


@dataclass(frozen=True, slots=True)
class Iterate:
    """The state after a number of rounds."""

    round: int
    coef: Mapping[str, IntArray]  # by party, in COEF_UNIT
    shared: Mapping[str, Mapping[int, IntArray]] = field(default_factory=dict)
    label: IntArray | None = None  # the label's noisy sketch, if labels are sketched


@dataclass(frozen=True, slots=True)
class FrankWolfe:
    """Steps of one job."""

    spec: FrankWolfeSpec
    job: str
    sketch: Sketch

    @classmethod
    def of(cls, spec: FrankWolfeSpec, job: str) -> "FrankWolfe":
        """Make the steps of ``job``."""
        return cls(spec, job, spec.sketch(job))

    def start(self) -> Iterate:
        """Return the iterate before the first round: all zero."""
        spec = self.spec
        coef = {block.party: np.zeros(len(block.features), np.int64) for block in spec.blocks}
        return Iterate(0, coef, {block.party: {} for block in spec.blocks})

    def with_label(self, state: Iterate, body: bytes) -> Iterate:
        """Take the label's sketch."""
        _, code = self.spec.label_share(self.sketch)
        return replace(state, label=code.decode(body))

    def sampled(self, round_: int) -> tuple[Block, ...]:
        """Return the parties of a round, from public randomness."""
        spec = self.spec
        if spec.sampling is Sampling.ALL:
            return spec.blocks
        if spec.sampling is Sampling.SERIAL:
            return (spec.blocks[round_ % len(spec.blocks)],)
        draw = self._randomness(round_, "parties")
        if spec.sampling is Sampling.NICE:
            order = draw.permutation(len(spec.blocks))[: spec.parties_per_round]
            return tuple(spec.blocks[place] for place in sorted(order))
        coins = draw.random(len(spec.blocks))
        return tuple(
            block
            for block, coin in zip(spec.blocks, coins, strict=True)
            if coin < block.probability
        )

    def tasks(self, state: Iterate) -> dict[str, Task]:
        """Return what to ask of whom; a party that can choose nothing sits out."""
        asked = {}
        for block in self.sampled(state.round):
            candidates = self._candidates(state, block)
            if candidates is not None:
                asked[block.party] = Task(state.round, self._public(state, block), candidates)
        return asked

    def absorb(self, state: Iterate, answers: Mapping[str, Answer]) -> Iterate:
        """Move the blocks of those who answered; the others stay where they are."""
        step = 2.0 / (self.spec.least_probability() * state.round + 2.0)
        coef, shared = dict(state.coef), {name: dict(z) for name, z in state.shared.items()}
        for block in self.spec.blocks:
            if (answer := answers.get(block.party)) is None:
                continue
            feature, sign = decode_choice(answer.select, len(block.features))
            moved = (1.0 - step) * coef[block.party].astype(np.float64)
            moved[feature] -= step * block.radius * sign * COEF_UNIT
            coef[block.party] = np.rint(moved).astype(np.int64)
            if answer.share is not None:
                _, code = self.spec.share(self.sketch)
                shared[block.party][feature] = code.decode(answer.share)
        return Iterate(state.round + 1, coef, shared, state.label)

    def _candidates(self, state: Iterate, block: Block) -> tuple[int, ...] | None:
        """Return a sample of what the party may choose from, () for all, None for nothing.

        A party that shares chooses among what it has shared once its shares are used up; one that
        never shares keeps its choices to itself and is always free.
        """
        features = list(range(len(block.features)))
        if block.shares and len(state.shared[block.party]) >= block.shares:
            features = sorted(state.shared[block.party])
        if not features:
            return None
        limit = self.spec.features_per_round
        if limit and limit < len(features):
            draw = self._randomness(state.round, f"features {block.party}")
            chosen = draw.choice(len(features), limit, replace=False)
            return tuple(sorted(int(features[place]) for place in chosen))
        return ()

    def _public(self, state: Iterate, block: Block) -> Public:
        """Form the others' part, weighted by how much of it is signal."""
        spec, scale = self.spec, self.sketch.column_norm2
        q = np.zeros(self.sketch.dim)
        for other in spec.blocks:
            if other.party != block.party:
                for feature, z in state.shared[other.party].items():
                    coef = state.coef[other.party][feature] / COEF_UNIT
                    if coef:
                        mechanism, _ = spec.share(self.sketch)
                        q += coef * self._trust(z, mechanism) * z
        if spec.labels is Labels.SKETCHED and not block.holds_label and state.label is not None:
            mechanism, _ = spec.label_share(self.sketch)
            q -= self._trust(state.label, mechanism) * state.label
        # A row of J' q / s has variance |q|^2 / (m s); in units of the value range.
        deviation = math.sqrt(float(q @ q) / (self.sketch.dim * scale)) / GRID
        clip = 1.0 + _CLIP_DEVIATIONS * deviation
        return Public(
            coef=state.coef[block.party],
            q=np.rint(q * Q_UNIT).astype(np.int64),
            weight=WEIGHT_UNIT,
            clip=round(clip * CLIP_UNIT),
        )

    def _trust(self, z: IntArray, mechanism: DiscreteGaussian) -> float:
        """Return the share of signal in what a sketch says of one row.

        ``k / (k + 1/m + noise / energy)`` with ``k`` the prior on squared correlation; the energy
        of the column is estimated from the sketch itself, which is released.
        """
        noise = self.sketch.dim * mechanism.sigma2 * (1.0 + 1.0 / 192.0)
        energy = max(float(z.astype(np.float64) @ z) - noise, 0.02 * noise)
        return self.spec.prior / (
            self.spec.prior + 1.0 / self.sketch.dim + noise / self.sketch.dim / energy
        )

    def _randomness(self, round_: int, use: str) -> np.random.Generator:
        seed = hashlib.sha256(f"{self.job}\0{use}\0{round_}".encode()).digest()
        return np.random.default_rng(np.frombuffer(seed, np.uint32))


def coefficients(state: Iterate) -> dict[str, FloatArray]:
    """Return the coefficients on the scaled features, by party."""
    return {name: coef / COEF_UNIT for name, coef in state.coef.items()}
