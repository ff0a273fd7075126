"""The coordinator's side of marginal regression: pure steps over releases."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID
from colonnade.data.model import LinearModel
from colonnade.methods.column_moments import ColumnMoments, moments_of
from colonnade.methods.job import Job
from colonnade.methods.models import linear_model
from colonnade.server.methods.base import (
    Bodies,
    Findings,
    count_used,
    whole_states,
)
from colonnade.server.store.base import IterateRow
from support.marginal.method import MEANS, PRODUCTS, MarginalSpec
from support.marginal.tasks import task_to_bytes


@dataclass(frozen=True, slots=True)
class MarginalState:
    """What was released so far."""

    round: int = 0
    releases: Mapping[str, Bodies] = field(default_factory=dict)  # by party


@dataclass(frozen=True, slots=True)
class MarginalRegression:
    """Steps of one job."""

    job: Job
    job_id: str
    spec: MarginalSpec

    def start(self) -> MarginalState:
        return MarginalState()

    def round_of(self, state: MarginalState) -> int:
        return state.round

    def finished(self, state: MarginalState) -> bool:
        return state.round > self.spec.rounds

    def tasks(self, state: MarginalState) -> Mapping[str, bytes]:
        centre = round(self._label_mean(state) * GRID)
        return {part.party: task_to_bytes(centre) for part in self.spec.parts}

    def check(self, state: MarginalState, party: str, bodies: Bodies) -> None:
        kind = (MEANS, PRODUCTS)[state.round]
        size = self.spec.body_bytes(party, kind)
        if [*bodies] != [kind] or len(bodies[kind]) != size:
            raise BadInput(f"party {party} did not answer with one {kind} of {size} bytes")

    def absorb(self, state: MarginalState, answers: Mapping[str, Bodies]) -> MarginalState:
        known = {party: {**state.releases.get(party, {}), **new} for party, new in answers.items()}
        return MarginalState(state.round + 1, known)

    def encode(self, state: MarginalState) -> bytes:
        releases = {
            part.party: {
                kind: body.hex() for kind, body in state.releases.get(part.party, {}).items()
            }
            for part in self.spec.parts
        }
        return json.dumps([state.round, releases]).encode()

    def decode(self, body: bytes, *, since: MarginalState | None = None) -> MarginalState:
        del since
        number, releases = json.loads(body)
        return MarginalState(
            number,
            {
                party: {kind: bytes.fromhex(text) for kind, text in bodies.items()}
                for party, bodies in releases.items()
            },
        )

    def cost(self, party: str, kind: str, round_: int) -> int:
        del round_
        return self.spec.made(party, kind)[0].cost

    def body_bytes(self, party: str, kind: str) -> int:
        return self.spec.body_bytes(party, kind)

    def model(self, state: MarginalState) -> LinearModel:
        coef, mean = self._coef(state), self._label_mean(state)
        shift = sum(float(coef[p] @ self._moments(state, p).mean[:-1]) for p in coef if state.round)
        return linear_model(self.job, self.job_id, coef, mean - shift)

    def features_used(self, state: MarginalState) -> Mapping[str, int]:
        return count_used(self._coef(state))

    def parameters(self) -> Mapping[str, Any]:
        return {"mean_units": self.spec.mean_units, "product_units": self.spec.product_units}

    def covariances(self, state: MarginalState) -> dict[str, FloatArray]:
        """Return the features' covariances with the label, in half ranges; 0 before any product."""
        found = {part.party: np.zeros(len(part.features)) for part in self.spec.parts}
        if self.finished(state):
            # What the products were centred by, as the task said it.
            centre = round(self._label_mean(state) * GRID) / GRID
            for party in found:
                _, code = self.spec.made(party, PRODUCTS)
                products = code.decode(state.releases[party][PRODUCTS]).astype(np.float64)
                moments = self._moments(state, party)
                products /= self.spec.population * GRID
                found[party] = products - moments.mean[:-1] * (moments.mean[-1] - centre)
        return found

    def _coef(self, state: MarginalState) -> dict[str, FloatArray]:
        found = self.covariances(state)
        if not self.finished(state):
            return found
        n_features = sum(each.size for each in found.values())
        return {
            party: covariance / self._moments(state, party).deviation[:-1] ** 2 / n_features
            for party, covariance in found.items()
        }

    def _moments(self, state: MarginalState, party: str) -> ColumnMoments:
        noise, code = self.spec.made(party, MEANS)
        noisy = code.decode(state.releases[party][MEANS])
        return moments_of(noisy, self.spec.population, noise)

    def _label_mean(self, state: MarginalState) -> float:
        """Return the mean of what all parties said of the label; 0 before they did."""
        if not state.round:
            return 0.0
        means = [self._moments(state, part.party).mean[-1] for part in self.spec.parts]
        return float(np.mean(means))


def marginal_findings(
    algorithm: MarginalRegression,
    states: Iterable[tuple[IterateRow, MarginalState]],
    *,
    is_open: bool,
) -> Findings:
    """Return the models, and the method's own section of the report."""
    seen = list(states)
    found = whole_states(algorithm, seen, is_open=is_open)
    covariances = algorithm.covariances(seen[-1][1])
    section = {"covariances": {party: each.tolist() for party, each in covariances.items()}}
    return replace(found, section=section)
