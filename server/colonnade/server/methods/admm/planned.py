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
    evidence,
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
        z, noise2 = self._moved(after, closed)
        if closed < spec.steps:
            return np.concatenate([z, np.zeros(2, np.int64)])
        coef = z[: spec.n_features].astype(np.float64)
        z[: spec.n_features] = np.rint(coef * evidence(coef * spec.unit, noise2))
        return self._with_intercept(after, np.concatenate([z, np.zeros(1, np.int64), z[-1:]]))

    def _moved(self, after: AdmmState, closed: int) -> tuple[IntArray, float]:
        """Return the model after ``closed`` rounds and the noise of its coordinates."""
        spec = self.spec
        state, gain = self._start(), 0.0
        for round_ in range(1, closed + 1):
            answers, noises = (int(each) for each in after.counts[round_ - 1])
            noise2 = self._noise2(round_, answers, noises)
            gain = state.gain(spec.dim, noise2)
            state = state.after(gain, noise2)
        mean: FloatArray = after.total.astype(np.float64) / float(after.counts[closed - 1, 0])
        point = (after.z[: spec.dim] + gain * mean) * spec.unit
        weight = gain / constants_of(spec.loss).curvature
        return penalised(spec, point, weight), state.noise2

    def _start(self) -> Filter:
        spec = self.spec
        length = spec.gamma * spec.lipschitz
        return Filter.start(dim=spec.dim, rows=spec.client_rows, length=length)

    def _noise2(self, round_: int, answers: int, noises: int) -> float:
        """Return the noise of a coordinate in the mean of a round's displacements."""
        sigma2 = float(self.spec.release(round_).mechanism.sigma2)
        return sigma2 * self.spec.unit**2 * noises / answers**2

    def _with_intercept(self, after: AdmmState, z: IntArray) -> IntArray:
        """Return ``z`` with the intercept after all answers about it, and the next radius."""
        spec = self.spec
        half = spec.unit / JOINT
        answers = [self._answers(question) for question in after.questions.tolist()]
        middle, radius = next_intercept(spec.loss, spec.client_rows, float(z[-1]) * half, answers)
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
