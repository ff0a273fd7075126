"""The coordinator's side of private block-coordinate Frank-Wolfe: pure steps over releases.

Everything here is a function of public numbers and of what parties released, so nothing of it is
private. The iterate keeps coefficients in fixed point and releases as they were received; the same
releases give the same iterate, bit for bit.

A job that shares may begin with local rounds: every party steps on its own block and the label,
which costs it little noise. Then each party's largest coefficients name the features that it will
share, and the steps begin anew among these, with the others' part in the residual. Fewer features
see the noise of the sketches, and the right ones are shared.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.errors import BadInput
from colonnade.methods.calibration import shaped
from colonnade.methods.frank_wolfe.residual import COEF_UNIT, TaskParameters
from colonnade.methods.frank_wolfe.solver.cross_term import CrossTerm
from colonnade.methods.frank_wolfe.solver.scores import scores_of
from colonnade.methods.frank_wolfe.spec import (
    LABEL,
    MEANS,
    SELECT,
    SHARE,
    Block,
    FrankWolfeSpec,
    PartySampling,
    decode_choice,
)
from colonnade.methods.problem import Loss

# A feature is shared if its coefficient after the local rounds is at least this part of the top.
_FINALIST = 0.3


@dataclass(frozen=True, slots=True)
class StepTask:
    """What one party is asked in a round."""

    round: int
    public: TaskParameters | None  # None for the opening
    candidates: tuple[int, ...] = ()  # empty for all that the party may choose from


@dataclass(frozen=True, slots=True)
class Iterate:
    """The state before round ``round``; bodies are kept as received."""

    round: int
    coef: Mapping[str, IntArray]  # by party, in COEF_UNIT
    # By party and feature; an empty body keeps a place for a feature that is still to be shared.
    shares: Mapping[str, Mapping[int, bytes]] = field(default_factory=dict)
    label: bytes | None = None  # the label's noisy sketch, if labels are sketched
    means: Mapping[str, bytes] = field(default_factory=dict)  # by party, if there is an intercept


@dataclass(frozen=True, slots=True)
class FrankWolfeSolver:
    """Steps of one job."""

    spec: FrankWolfeSpec
    job: str
    cross: CrossTerm

    @classmethod
    def of(cls, spec: FrankWolfeSpec, job: str) -> "FrankWolfeSolver":
        """Make the steps of ``job``."""
        return cls(spec, job, CrossTerm(spec, spec.sketch(job)))

    def start(self) -> Iterate:
        """Return the iterate before the opening: all zero."""
        spec = self.spec
        coef = {block.party: np.zeros(len(block.features), np.int64) for block in spec.blocks}
        return Iterate(0, coef, {block.party: {} for block in spec.blocks})

    def finished(self, state: Iterate) -> bool:
        """Return whether all rounds are done."""
        return state.round > self.spec.rounds

    def sampled(self, round_: int) -> tuple[Block, ...]:
        """Return the parties of a step's round, from public randomness."""
        spec = self.spec
        if spec.sampling is PartySampling.ALL:
            return spec.blocks
        if spec.sampling is PartySampling.SERIAL:
            return (spec.blocks[(round_ - 1) % len(spec.blocks)],)
        draw = self._randomness(round_, "parties")
        if spec.sampling is PartySampling.NICE:
            order = draw.permutation(len(spec.blocks))[: spec.parties_per_round]
            return tuple(spec.blocks[place] for place in sorted(order))
        coins = draw.random(len(spec.blocks))
        return tuple(
            block
            for block, coin in zip(spec.blocks, coins, strict=True)
            if coin < block.probability
        )

    def _asked(self, state: Iterate) -> list[Block]:
        """Return the sampled parties that have something to choose from."""
        return [block for block in self.sampled(state.round) if self._choice(state, block)]

    def tasks(self, state: Iterate) -> dict[str, StepTask]:
        """Return what to ask of whom; nobody, if the round asks nothing or all are done."""
        if self.finished(state):
            return {}
        if state.round == 0:
            asked = [block.party for block in self.spec.blocks if self.spec.opening(block)]
            return {party: StepTask(0, None) for party in asked}
        blocks = self._asked(state)
        public = self.cross.publics(state.coef, state.shares, state.label, state.means, blocks)
        return {
            block.party: StepTask(state.round, public[block.party], self._candidates(state, block))
            for block in blocks
        }

    def check(self, state: Iterate, party: str, bodies: Mapping[str, bytes]) -> None:
        """Raise `BadInput` unless ``bodies`` are of the kinds and sizes that are expected."""
        block = next((block for block in self.spec.blocks if block.party == party), None)
        if block is None:
            raise BadInput(f"party {party!r} is not in the job")
        if self.finished(state):
            raise BadInput("the job's rounds are over; nothing is expected")
        expected = self._expected(state, block, bodies)
        if set(bodies) != set(expected):
            wanted = ", ".join(expected) or "nothing"
            raise BadInput(
                f"round {state.round} expects {wanted} of party {party!r}, "
                f"not {', '.join(sorted(bodies)) or 'nothing'}"
            )
        for kind, body in bodies.items():
            if len(body) != (size := self.spec.body_bytes(party, kind)):
                raise BadInput(
                    f"the {kind} of party {party!r} has {len(body)} bytes instead of {size}"
                )

    def absorb(self, state: Iterate, answers: Mapping[str, Mapping[str, bytes]]) -> Iterate:
        """Take the opening, or move the blocks of those who answered; the others stay."""
        if state.round == 0:
            means = {name: bodies[MEANS] for name, bodies in answers.items() if MEANS in bodies}
            label = next((bodies[LABEL] for bodies in answers.values() if LABEL in bodies), None)
            return replace(state, round=1, means=means, label=label)
        local = self.spec.local_rounds
        step = 2.0 / (self.spec.least_probability() * self._since(state.round) + 2.0)
        coef, shares = dict(state.coef), {name: dict(z) for name, z in state.shares.items()}
        for block in self.spec.blocks:
            if (bodies := answers.get(block.party)) is None:
                continue
            feature, sign = decode_choice(bodies[SELECT], len(block.features))
            moved = (1.0 - step) * coef[block.party].astype(np.float64)
            moved[feature] -= step * self._radius(state, block) * sign * COEF_UNIT
            coef[block.party] = np.rint(moved).astype(np.int64)
            if SHARE in bodies:
                shares[block.party][feature] = bodies[SHARE]
        if state.round == local:
            picked = self._finalists(coef, state.means)
            shares = {name: dict.fromkeys(places, b"") for name, places in picked.items()}
            coef = {name: np.zeros_like(part) for name, part in coef.items()}
        return replace(state, round=state.round + 1, coef=coef, shares=shares)

    def coefficients(self, state: Iterate) -> dict[str, FloatArray]:
        """Return the coefficients on the scaled features, by party."""
        scale = self.spec.output_scale
        return {name: scale * coef / COEF_UNIT for name, coef in state.coef.items()}

    def intercept(self, state: Iterate) -> float:
        """Return the constant term for scaled features and label; 0 for a job without one.

        For the logistic loss it is the logit's, for which the mean probability is the base rate.
        No release estimates the score's covariance with the label, and its variance only
        as far as sketches show correlations, so the scale stays that of the surrogate. That is too
        little confidence for a good model, by a factor of 1 to 3 at a base rate of a half and more
        at small ones, and too much for one that is mostly noise.
        """
        own = self.cross.intercept(state.coef, state.means)
        if self.spec.loss is not Loss.LOGISTIC:
            return own
        scales = self.cross.scales(state.means)
        scores = scores_of(self.spec, self.cross.sketch, scales, state.coef, state.shares)
        found = shaped(scales.label_mean, scores, slope=self.spec.output_scale)
        return found.intercept(own)

    def _since(self, round_: int) -> int:
        """Count the steps before this one; they begin anew after the local rounds."""
        local = self.spec.local_rounds
        return round_ - 1 - (local if round_ > local else 0)

    def _finalists(
        self, coef: Mapping[str, IntArray], means: Mapping[str, bytes]
    ) -> dict[str, list[int]]:
        """Return the features that will be shared: large after the local rounds.

        Large is 0.3 of the largest of all parties, in standard deviations: what parties have in
        common makes many small coefficients, which would be counted once by each.
        """
        scales = self.cross.scales(means)
        size = {name: np.abs(part) * scales.features[name].deviation for name, part in coef.items()}
        least = _FINALIST * max(float(part.max()) for part in size.values())
        picked = {}
        for block in self.spec.blocks:
            mine = size[block.party]
            order = np.argsort(-mine, kind="stable")[: block.shares]
            picked[block.party] = sorted(int(i) for i in order if mine[i] >= least and mine[i])
        return picked

    def _radius(self, state: Iterate, block: Block) -> float:
        """Return the party's radius in this round: smaller if it has few features to share."""
        radius = self.cross.radius(block, state.means)
        if not self._shares_picked(state, block):
            return radius
        return radius * (len(state.shares[block.party]) + 1) / (block.shares + 1)

    def _shares_picked(self, state: Iterate, block: Block) -> bool:
        return 0 < self.spec.local_rounds < state.round and block.shares > 0

    def _expected(
        self, state: Iterate, block: Block, bodies: Mapping[str, bytes]
    ) -> tuple[str, ...]:
        """Return the kinds that the party owes; what it selected decides about a share."""
        if state.round == 0:
            return self.spec.opening(block)
        if block not in self._asked(state):
            return ()
        if SELECT not in bodies:
            return (SELECT,)
        try:
            feature, _ = decode_choice(bodies[SELECT], len(block.features))
        except ValueError as error:
            raise BadInput(f"party {block.party!r}: {error}") from None
        if feature not in (self._candidates(state, block) or self._choice(state, block)):
            raise BadInput(f"party {block.party!r} selected a feature that it was not asked about")
        if self.spec.is_local(state.round):
            return (SELECT,)
        shared = state.shares[block.party]
        new = not shared[feature] if feature in shared else len(shared) < block.shares
        return (SELECT, SHARE) if new else (SELECT,)

    def _choice(self, state: Iterate, block: Block) -> list[int]:
        """Return what the party may choose from.

        A party that shares chooses among what it has shared once its shares are used up, or among
        what was picked for it after the local rounds, if anything was; one that never shares keeps
        its choices to itself and is always free.
        """
        shared = state.shares[block.party]
        if self._shares_picked(state, block) or (block.shares and len(shared) >= block.shares):
            return sorted(shared)
        return list(range(len(block.features)))

    def _candidates(self, state: Iterate, block: Block) -> tuple[int, ...]:
        """Return a sample of what the party may choose from, () for all."""
        features, limit = self._choice(state, block), self.spec.features_per_round
        if not limit or limit >= len(features):
            return () if len(features) == len(block.features) else tuple(features)
        draw = self._randomness(state.round, f"features {block.party}")
        chosen = draw.choice(len(features), limit, replace=False)
        return tuple(sorted(int(features[place]) for place in chosen))

    def _randomness(self, round_: int, use: str) -> np.random.Generator:
        seed = hashlib.sha256(f"{self.job}\0{use}\0{round_}".encode()).digest()
        return np.random.default_rng(np.frombuffer(seed, np.uint32))
