"""The coordinator's side of a moments job: pure steps over releases.

Everything here is a function of public numbers and of what parties released, so nothing of it is
private. A state keeps releases as they were received and, in fixed point, what linear algebra made
of them: directions and coefficients. Tasks follow from a state by sums in a fixed order, so that
the same state gives the same tasks, bit for bit, on any machine.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.errors import BadInput
from colonnade.linear.gram import within_ball
from colonnade.methods.base import Part
from colonnade.methods.calibration import Calibration, discriminant
from colonnade.methods.column_moments import ColumnMoments
from colonnade.methods.frank_wolfe.residual import COEF_UNIT
from colonnade.methods.frank_wolfe.spec import decode_choice
from colonnade.methods.made_up_scores import joined, made_up_scores
from colonnade.methods.moments.solver.coefficients import Kept, fixed_point, in_deviations
from colonnade.methods.moments.solver.directions import (
    Directions,
    Estimate,
    Pair,
    Products,
    basis_of,
    estimate,
    others_back,
    products_of,
    share_weights,
    spans_of,
)
from colonnade.methods.moments.solver.estimates import Local, label_back, local_of, unclipped
from colonnade.methods.moments.solver.scales import Scales
from colonnade.methods.moments.solver.screening import Choice, path_public
from colonnade.methods.moments.solver.shares import shares_of
from colonnade.methods.moments.spec import SCREEN, MomentsSpec, Stage
from colonnade.methods.moments.staged import expected_part
from colonnade.methods.moments.tasks import Task
from colonnade.methods.problem import Labels, Loss


@dataclass(frozen=True, slots=True, eq=False)
class MomentsState:
    """The state before round ``round``; bodies are kept as received.

    Two states are equal if they are one object: results are remembered by it (`_calibrated`).
    """

    round: int
    bodies: Mapping[str, Mapping[str, bytes]]  # by party and kind, but for choices
    choices: Mapping[str, tuple[Choice, ...]]  # by party, in the order of screening
    basis: Mapping[str, IntArray] = field(default_factory=dict)  # (probes, kept + 1), in BASIS_UNIT
    coef: Mapping[str, IntArray] = field(default_factory=dict)  # by party, in COEF_UNIT
    intercept: int = 0  # in COEF_UNIT


@dataclass(frozen=True, slots=True)
class MomentsSolver:
    """Steps of one job."""

    spec: MomentsSpec
    job: str

    def start(self) -> MomentsState:
        """Return the state before the first round."""
        parts = self.spec.parts
        return MomentsState(
            round=0,
            bodies={part.party: {} for part in parts},
            choices={part.party: () for part in parts},
            coef={part.party: np.zeros(len(part.features), np.int64) for part in parts},
        )

    def finished(self, state: MomentsState) -> bool:
        """Return whether all rounds are done."""
        return state.round >= len(self.spec.stages())

    def tasks(self, state: MomentsState) -> dict[str, Task]:
        """Return what to ask of whom; nobody, if all are done."""
        if self.finished(state):
            return {}
        asked = [p for p in self.spec.parts if self.spec.round_kinds(state.round, p)]
        if self.spec.stages()[state.round] is Stage.MEANS:
            return {part.party: Task(state.round) for part in asked}
        scales = Scales.of(self.spec, state.bodies)
        return {part.party: self._task(state, part, scales) for part in asked}

    def check(self, state: MomentsState, party: str, bodies: Mapping[str, bytes]) -> None:
        """Raise `BadInput` unless ``bodies`` are of the kinds and sizes that are expected."""
        part = expected_part(self.spec, state.round, party, bodies)
        if SCREEN in bodies:
            self._chosen(state, part, bodies[SCREEN])

    def absorb(
        self, state: MomentsState, answers: Mapping[str, Mapping[str, bytes]]
    ) -> MomentsState:
        """Take a round's releases and compute what follows from them."""
        stage = self.spec.stages()[state.round]
        if stage is Stage.SCREEN:
            choices = dict(state.choices)
            for part in self.spec.wide():
                chosen = self._chosen(state, part, answers[part.party][SCREEN])
                choices[part.party] = (*choices[part.party], chosen)
            return replace(state, round=state.round + 1, choices=choices)
        bodies = {
            name: {**held, **dict(sorted(answers.get(name, {}).items()))}
            for name, held in state.bodies.items()
        }
        state = replace(state, round=state.round + 1, bodies=bodies)
        if stage is Stage.MEANS:
            scales = Scales.of(self.spec, state.bodies)
            return replace(state, intercept=round(scales.label_mean * COEF_UNIT))
        if stage is Stage.GRAM:
            state = replace(state, basis=self._bases(state))
        return self._solved(state) if stage in (Stage.GRAM, Stage.CROSS) else state

    def coefficients(self, state: MomentsState) -> dict[str, FloatArray]:
        """Return the coefficients on the scaled features, by party; of logits for the logistic."""
        scale = self.calibration(state).slope if self.spec.loss is Loss.LOGISTIC else 1.0
        return {name: scale * coef / COEF_UNIT for name, coef in state.coef.items()}

    def intercept(self, state: MomentsState) -> float:
        """Return the constant term for scaled features and label; the logit's for the logistic."""
        own = state.intercept / COEF_UNIT
        return self.calibration(state).intercept(own) if self.spec.loss is Loss.LOGISTIC else own

    def calibration(self, state: MomentsState) -> Calibration:
        """Return what turns the score into a logit; coefficients were fitted to noise, too.

        So one standard error of products with the label is taken off the covariance.
        """
        return _calibrated(self, state)

    def scores(self, state: MomentsState, scales: Scales, found: Estimate) -> FloatArray:
        """Return made-up values of the score, with the shape that releases suggest."""
        kept = {part.party: self.kept(state, part) for part in self.spec.parts}
        known = joined((scales.features[name], kept[name]) for name in kept)
        spread = np.sqrt(np.diag(found.gram))
        return made_up_scores(
            np.concatenate([state.coef[name][kept[name]] / COEF_UNIT for name in kept]),
            ColumnMoments(known.mean, spread * known.deviation),
            correlation=found.gram / np.outer(spread, spread),
            label=found.target / spread,
            rate=(1.0 + scales.label_mean) / 2.0,
        )

    def kept(self, state: MomentsState, part: Part) -> list[int]:
        """Return the features of a party that are left after screening."""
        if part not in self.spec.wide():
            return list(range(len(part.features)))
        return sorted(feature for feature, _ in state.choices[part.party])

    def estimate(self, state: MomentsState) -> Estimate:
        """Return the Gram matrix of all kept features, in standard deviations."""
        return estimate(self.spec, *self.known(state))

    def in_deviations(self, state: MomentsState, scales: Scales) -> list[FloatArray]:
        """Return the coefficients of kept features by party, in standard deviations."""
        return in_deviations(state.coef, self._kept(state), scales.features, scales.label_deviation)

    def known(
        self, state: MomentsState
    ) -> tuple[list[Local], list[Directions], dict[Pair, Products]]:
        """Return all parties' own statistics, their directions, and products between these."""
        locals_ = [local_of(self.spec, part, state.bodies) for part in self.spec.parts]
        directions = [Directions.of(state.basis[part.party]) for part in self.spec.parts]
        done = self.spec.shares() and self.finished(state)
        products = products_of(self.spec, state.bodies, directions) if done else {}
        return locals_, directions, products

    def scaled(self, state: MomentsState, x: FloatArray) -> tuple[dict[str, IntArray], int]:
        """Turn a solution in standard deviations into fixed-point coefficients and intercept."""
        scales = Scales.of(self.spec, state.bodies)
        return fixed_point(x, self._kept(state), scales, scales.label_deviation)

    def _kept(self, state: MomentsState) -> Kept:
        return [(part, self.kept(state, part)) for part in self.spec.parts]

    def _bases(self, state: MomentsState) -> dict[str, IntArray]:
        shared, bases = self.spec.labels is Labels.SHARED, {}
        for part in self.spec.parts:
            local = local_of(self.spec, part, state.bodies)
            bases[part.party] = basis_of(
                local,
                shared=self.spec.n_directions(part),
                probes=self.spec.n_probes(part),
                label=shared,
            )
        return bases

    def _solved(self, state: MomentsState) -> MomentsState:
        found = self.estimate(state)
        penalty = self.spec.penalty * found.error
        x = within_ball(found.gram, found.target, self.spec.radius, l1=penalty)
        coef, constant = self.scaled(state, x)
        return replace(state, coef=coef, intercept=constant)

    def _task(self, state: MomentsState, part: Part, scales: Scales) -> Task:
        spec, stage, kept = self.spec, self.spec.stages()[state.round], self.kept(state, part)
        if stage is Stage.LABEL:
            only = np.zeros((1, 0))
            made = scales.projection(part, (), only, radius=spec.share_clip, label=np.ones(1))
            return Task(state.round, made)
        if stage is Stage.SCREEN:
            taken = {feature for feature, _ in state.choices[part.party]}
            left = tuple(f for f in range(len(part.features)) if f not in taken)
            public = path_public(spec, part, scales, state.choices[part.party], state.bodies)
            return Task(state.round, public=public, candidates=left if taken else ())
        if stage is Stage.GRAM:
            return self._gram_task(state, part, scales)
        matrix, label = Directions.of(state.basis[part.party]).matrix()
        if stage is Stage.SHARE:
            weights = np.array(share_weights(spec.n_directions(part)))
            matrix = matrix[: weights.size] * weights[:, None]
            label = label[: weights.size] * weights
            radius = spec.share_clip * math.sqrt(sum(float(weight) ** 2 for weight in weights))
        else:
            radius = spec.probe_clip * math.sqrt(len(matrix))
        own = label if part.holds_label else None
        made = scales.projection(part, kept, matrix, radius=radius, label=own)
        if stage is Stage.SHARE:
            return Task(state.round, made)
        return Task(state.round, made, others_back(spec, part, state.bodies).sketches)

    def _gram_task(self, state: MomentsState, part: Part, scales: Scales) -> Task:
        spec, kept = self.spec, self.kept(state, part)
        made = scales.rows(part, kept, radius=spec.ball(part), label_weight=spec.label_weight)
        sketches = None if part.holds_label else label_back(spec, state.bodies).sketches
        return Task(state.round, made, sketches)

    def _chosen(self, state: MomentsState, part: Part, body: bytes) -> Choice:
        try:
            feature, sign = decode_choice(body, len(part.features))
        except ValueError as error:
            raise BadInput(f"party {part.party!r}: {error}") from None
        if feature in [taken for taken, _ in state.choices[part.party]]:
            raise BadInput(f"party {part.party!r} chose a feature that it was not asked about")
        return feature, sign


@functools.lru_cache(maxsize=4)
def _calibrated(solver: MomentsSolver, state: MomentsState) -> Calibration:
    """Return the calibration; coefficients and intercept of one state both need it."""
    if not state.basis:  # no coefficients yet
        return discriminant(state.intercept / COEF_UNIT, 0.0, 0.0)
    scales, found = Scales.of(solver.spec, state.bodies), solver.estimate(state)
    x = solver.in_deviations(state, scales)
    scaled, covariance, noise2 = list[FloatArray](), 0.0, 0.0
    for part, span in zip(solver.spec.parts, spans_of([len(each) for each in x]), strict=True):
        mine = x[len(scaled)]
        undo = unclipped(solver.spec, part, state.bodies, mine, scales.label_mean)
        covariance += undo.covariance * float(found.target[span] @ mine)
        error = local_of(solver.spec, part, state.bodies).target_error
        noise2 += (undo.covariance * error) ** 2 * float(mine @ mine)
        scaled.append(undo.variance**0.5 * mine)
    concat, whole = np.concatenate(scaled), 1.0 - scales.label_mean**2  # of two classes
    return discriminant(
        scales.label_mean,
        whole * float(concat @ found.gram @ concat),
        whole * (covariance - noise2**0.5),
        error=shares_of(solver.spec, *solver.known(state)).doubt(np.concatenate(x)),
        scores=solver.scores(state, scales, found),
    )
