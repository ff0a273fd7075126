"""The planned filter at the coordinator (`admm.recipe`): from answers to the next point.

The state's ``z`` is the model ``(w, 2 b)``, and beside it the radius with which the intercept is
asked next and the intercept that the displacements led to, all in grid steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.methods.admm.recipe import (
    JOINT,
    Filter,
    InterceptAnswers,
    constants_of,
    next_intercept,
)
from colonnade.methods.admm.spec import MAX_STATE, AdmmSpec
from colonnade.server.methods.admm.rules import counted, penalised, unpacked
from colonnade.server.methods.admm.state import AdmmState
from colonnade.wire.cohort import ClientAnswers


@dataclass(frozen=True, slots=True)
class Planned:
    """Moves the model by the planned gain, then asks about the intercept alone."""

    spec: AdmmSpec

    def points(self, state: AdmmState, clients: IntArray, seen: IntArray) -> IntArray:  # noqa: ARG002
        """Return the model, in rounds of the intercept with the radius."""
        return seen[:, : self.spec.point_size(state.round)]

    def collect(
        self,
        state: AdmmState,
        said: ClientAnswers,
        seen: IntArray,
        *,
        in_place: bool,  # noqa: ARG002
    ) -> Mapping[str, Any]:
        """Return the sum of the round's displacements, or sums of answers about the intercept."""
        spec, counts = self.spec, counted(state, said)
        if state.round > spec.steps:
            return {"questions": self._with_answers(state, said), "counts": counts}
        # A late answer leads to the same place as from where it was asked.
        behind = seen[:, : spec.dim].sum(axis=0) - said.clients.size * state.z[: spec.dim]
        moved = np.zeros(spec.dim, np.int64)
        for round_ in np.unique(said.rounds).tolist():
            moved += unpacked(spec, round_, said.only(said.rounds == round_)).sum(axis=0)
        return {"total": state.total + moved + behind, "counts": counts}

    def _with_answers(self, state: AdmmState, said: ClientAnswers) -> IntArray:
        questions = state.questions.copy()
        for round_ in np.unique(said.rounds).tolist():
            these = said.only(said.rounds == round_)
            total = int(unpacked(self.spec, round_, these).sum())
            noises = sum(map(bool, these.bodies))
            questions[round_ - self.spec.steps - 1, 2:] += (total, these.clients.size, noises)
        return questions

    def model(self, after: AdmmState) -> IntArray:
        """Return the model after the round that has just closed, and what to ask next."""
        spec, closed = self.spec, after.round - 1
        if closed > spec.steps:
            return self._with_intercept(after, after.z)
        z = self._moved(after, closed)
        if closed < spec.steps:
            return np.concatenate([z, np.zeros(2, np.int64)])
        return self._with_intercept(after, np.concatenate([z, np.zeros(1, np.int64), z[-1:]]))

    def _moved(self, after: AdmmState, closed: int) -> IntArray:
        """Return the model after ``closed`` rounds."""
        spec, known = self.spec, self._known(after, closed - 1)
        noise2, radius, answers = self._said(after, closed)
        gain = known.gain(spec.dim, noise2, radius)
        gains = np.full(spec.dim, gain)
        gains[-1] = known.intercept_gain(noise2, radius, answers)
        mean: FloatArray = after.total.astype(np.float64) / answers
        point = (after.z[: spec.dim] + gains * mean) * spec.unit
        return penalised(spec, point, gain / constants_of(spec.loss).curvature)

    def _known(self, after: AdmmState, rounds: int) -> Filter:
        """Return what the answers to so many rounds have told."""
        spec = self.spec
        known = Filter.start(spec.loss, dim=spec.dim, rows=spec.client_rows)
        for round_ in range(1, rounds + 1):
            noise2, radius, answers = self._said(after, round_)
            known = known.after(noise2, radius, dim=spec.dim, answers=answers)
        return known

    def _said(self, after: AdmmState, round_: int) -> tuple[float, float, int]:
        """Return noise of a coordinate in the mean of a round, its radius and its answers."""
        release = self.spec.release(round_)
        answers, noises = (int(each) for each in after.counts[round_ - 1])
        noise2 = float(release.mechanism.sigma2) * self.spec.unit**2 * noises / answers**2
        return noise2, release.radius * self.spec.unit, answers

    def _with_intercept(self, after: AdmmState, z: IntArray) -> IntArray:
        """Return ``z`` with the intercept after all answers about it, and the next radius."""
        spec = self.spec
        half = spec.unit / JOINT
        answers = [self._answers(question) for question in after.questions.tolist()]
        deviation = self._known(after, spec.steps).intercept2 ** 0.5
        start = float(z[-1]) * half
        middle, radius = next_intercept(spec.loss, spec.client_rows, start, deviation, answers)
        z = z.copy()
        z[spec.dim - 1] = min(MAX_STATE, max(-MAX_STATE, round(middle / half)))
        z[spec.dim] = min(MAX_STATE, max(1, round(radius / spec.unit)))
        return z

    def _answers(self, question: list[int]) -> InterceptAnswers:
        spec, (at, radius, total, count, noises) = self.spec, question
        step = radius * spec.unit / spec.radius  # length of a grid step of these answers
        sigma2 = float(spec.release(spec.rounds).mechanism.sigma2)
        return InterceptAnswers(
            at=at * spec.unit / JOINT,
            radius=radius * spec.unit,
            mean=total * step / max(count, 1),
            count=count,
            noise2=sigma2 * step**2 * noises / max(count, 1) ** 2,
        )

    def opened(self, after: AdmmState, z: IntArray) -> Mapping[str, Any]:
        """Return an empty sum, or a new question about the intercept."""
        spec = self.spec
        fresh: dict[str, Any] = {"total": np.zeros_like(after.total)}
        if after.round > spec.steps:
            asked = np.array([[z[spec.dim - 1], z[spec.dim], 0, 0, 0]], np.int64)
            fresh["questions"] = np.concatenate([after.questions, asked])
        return fresh
