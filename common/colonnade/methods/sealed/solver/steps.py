"""The coordinator's side of a sealed job: pure steps over releases.

Everything here is a function of public numbers and of what parties released, so nothing of it is
private. Ciphertexts and replies are relayed as they are, to those that the round's tasks name, and
dropped when the round is over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.linear.ball import Projection
from colonnade.linear.gram import within_ball
from colonnade.methods.base import Part
from colonnade.methods.calibration import Calibration, discriminant
from colonnade.methods.frank_wolfe.residual import COEF_UNIT
from colonnade.methods.made_up_scores import joined
from colonnade.methods.moments.solver.coefficients import Kept, fixed_point, in_deviations
from colonnade.methods.moments.solver.scales import Scales
from colonnade.methods.moments.staged import expected_part
from colonnade.methods.problem import Loss
from colonnade.methods.sealed.kinds import (
    LABEL,
    PRODUCTS,
    REPLY,
    SEAL,
    WIDE,
    SealedStage,
    parsed,
)
from colonnade.methods.sealed.rounds import relayed_kinds
from colonnade.methods.sealed.solver.calibration import calibration
from colonnade.methods.sealed.solver.estimates import SealedEstimate, estimate, spread_gram
from colonnade.methods.sealed.solver.screening import screened
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.methods.sealed.tasks import Relayed, SealedTask

# Of the penalty that chooses features, what is left when they are fitted.
_REFIT = 0.15
# Which relayed bodies are of no more use once a stage is over.
_SPENT = {
    SealedStage.PRODUCTS: (LABEL,),
    SealedStage.SCREEN: (PRODUCTS,),
    SealedStage.REPLY: (SEAL,),
    SealedStage.OPEN: (REPLY,),
}


@dataclass(frozen=True, slots=True)
class SealedState:
    """The state before round ``round``; bodies are kept as received."""

    round: int
    bodies: Mapping[str, Mapping[str, bytes]]  # by party and kind
    kept: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of screened parties
    coef: Mapping[str, IntArray] = field(default_factory=dict)  # by party, in COEF_UNIT
    intercept: int = 0  # in COEF_UNIT


@dataclass(frozen=True, slots=True)
class SealedSolver:
    """Steps of one job."""

    spec: SealedSpec

    def start(self) -> SealedState:
        """Return the state before the first round."""
        parts = self.spec.parts
        coef = {part.party: np.zeros(len(part.features), np.int64) for part in parts}
        return SealedState(round=0, bodies={part.party: {} for part in parts}, coef=coef)

    def finished(self, state: SealedState) -> bool:
        """Return whether all rounds are done."""
        return state.round >= len(self.spec.stages())

    def tasks(self, state: SealedState) -> dict[str, SealedTask]:
        """Return what to ask of whom; nobody, if all are done."""
        if self.finished(state):
            return {}
        asked = [p for p in self.spec.parts if self.spec.round_kinds(state.round, p)]
        if self.spec.stages()[state.round] is SealedStage.MEANS:
            return {part.party: SealedTask(state.round) for part in asked}
        scales = Scales.of(self.spec, state.bodies)
        return {part.party: self._task(state, part, scales) for part in asked}

    def check(self, state: SealedState, party: str, bodies: Mapping[str, bytes]) -> None:
        """Raise `BadInput` unless ``bodies`` are of the kinds and sizes that are expected."""
        expected_part(self.spec, state.round, party, bodies)

    def absorb(self, state: SealedState, answers: Mapping[str, Mapping[str, bytes]]) -> SealedState:
        """Take a round's releases and compute what follows from them."""
        stage = self.spec.stages()[state.round]
        spent = _SPENT.get(stage, ())
        bodies = {
            name: {
                kind: body
                for kind, body in {**held, **dict(sorted(answers.get(name, {}).items()))}.items()
                if parsed(kind)[0] not in spent
            }
            for name, held in state.bodies.items()
        }
        state = replace(state, round=state.round + 1, bodies=bodies)
        if stage is SealedStage.MEANS:
            scales = Scales.of(self.spec, bodies)
            return replace(state, intercept=round(scales.label_mean * COEF_UNIT))
        if self.spec.wide() and self.spec.stages()[state.round :][:1] == (SealedStage.SEAL,):
            kept = {part.party: screened(self.spec, part, bodies) for part in self.spec.wide()}
            return replace(state, kept=kept)
        return self._solved(state) if stage is SealedStage.OPEN else state

    def coefficients(self, state: SealedState) -> dict[str, FloatArray]:
        """Return the coefficients on the scaled features, by party; of logits for the logistic."""
        scale = self.calibration(state).slope if self.spec.loss is Loss.LOGISTIC else 1.0
        return {name: scale * coef / COEF_UNIT for name, coef in state.coef.items()}

    def intercept(self, state: SealedState) -> float:
        """Return the constant term for scaled features and label; the logit's for the logistic."""
        own = state.intercept / COEF_UNIT
        return self.calibration(state).intercept(own) if self.spec.loss is Loss.LOGISTIC else own

    def calibration(self, state: SealedState) -> Calibration:
        """Return what turns the score into a logit."""
        if not self.finished(state):  # no coefficients yet
            return discriminant(state.intercept / COEF_UNIT, 0.0, 0.0)
        scales = Scales.of(self.spec, state.bodies)
        kept = {part.party: self.kept(state, part) for part in self.spec.parts}
        return calibration(
            self.estimate(state),
            self.in_deviations(state),
            joined((scales.features[name], kept[name]) for name in kept),
            coef=np.concatenate([state.coef[name][list(kept[name])] / COEF_UNIT for name in kept]),
            label_mean=scales.label_mean,
        )

    def in_deviations(self, state: SealedState) -> FloatArray:
        """Return the coefficients of kept features of all parties, in standard deviations."""
        scales = Scales.of(self.spec, state.bodies)
        label = self._label_deviation(state, scales)
        return np.concatenate(in_deviations(state.coef, self._kept(state), scales.features, label))

    def kept(self, state: SealedState, part: Part) -> tuple[int, ...]:
        """Return the features of a party that are left after screening."""
        return state.kept.get(part.party, tuple(range(len(part.features))))

    def estimate(self, state: SealedState) -> SealedEstimate:
        """Return the Gram matrix of all kept features, in standard deviations."""
        return estimate(self.spec, state.bodies)

    def scaled(self, state: SealedState, x: FloatArray) -> tuple[dict[str, IntArray], int]:
        """Turn a solution in standard deviations into fixed-point coefficients and intercept."""
        scales = Scales.of(self.spec, state.bodies)
        return fixed_point(x, self._kept(state), scales, self._label_deviation(state, scales))

    def _kept(self, state: SealedState) -> Kept:
        return [(part, self.kept(state, part)) for part in self.spec.parts]

    def _label_deviation(self, state: SealedState, scales: Scales) -> float:
        """Return the label's deviation: as it was released, or wider where the ball shows so."""
        _, spread = spread_gram(self.spec, self.spec.owner, state.bodies)
        return scales.label_deviation * spread.label

    def _solved(self, state: SealedState) -> SealedState:
        found = self.estimate(state)
        x = solved(self.spec, found.gram, found.target, found.error)
        coef, constant = self.scaled(state, x)
        return replace(state, coef=coef, intercept=constant)

    def _task(self, state: SealedState, part: Part, scales: Scales) -> SealedTask:
        spec, stage = self.spec, self.spec.stages()[state.round]
        relayed = self._relayed(state, part)
        if stage in (SealedStage.SCREEN, SealedStage.OPEN):
            return SealedTask(state.round, relayed=relayed)
        if stage in (SealedStage.SEAL, SealedStage.REPLY):
            projection = self._rows(
                scales, part, self.kept(state, part), spec.rows(SEAL, part).ball
            )
            return SealedTask(state.round, projection, relayed=relayed)
        kinds = spec.round_kinds(state.round, part)
        wide = label = None
        if WIDE in kinds or stage is SealedStage.PRODUCTS:
            every = range(len(part.features))
            wide = self._rows(scales, part, every, spec.rows(WIDE, part).ball)
        if any(parsed(kind)[0] == LABEL for kind in kinds):
            label = scales.projection(
                part, (), np.zeros((1, 0)), radius=spec.rows(LABEL, part).ball, label=np.ones(1)
            )
        return SealedTask(state.round, wide, label, relayed)

    def _rows(self, scales: Scales, part: Part, kept: Sequence[int], radius: float) -> Projection:
        return scales.rows(part, kept, radius=radius, label_weight=self.spec.label_weight)

    def _relayed(self, state: SealedState, part: Part) -> tuple[Relayed, ...]:
        """Return the bodies that the round's task carries to a party, in order."""
        wanted = relayed_kinds(self.spec, self.spec.stages()[state.round], part)
        return tuple(Relayed(party, kind, state.bodies[party][kind]) for party, kind in wanted)


def solved(spec: SealedSpec, gram: FloatArray, target: FloatArray, error: float) -> FloatArray:
    """Return coefficients in standard deviations: a penalty chooses, a smaller one fits.

    The L1 penalty that keeps noise out also shrinks what it lets in. So the features that it
    chooses are fitted again with less of it (the relaxed lasso: Meinshausen 2007).
    """
    x = within_ball(gram, target, spec.radius, l1=spec.penalty * error)
    chosen = np.flatnonzero(x)
    if chosen.size:
        part, penalty = gram[np.ix_(chosen, chosen)], _REFIT * spec.penalty * error
        x[chosen] = within_ball(part, target[chosen], spec.radius, l1=penalty)
    return x
