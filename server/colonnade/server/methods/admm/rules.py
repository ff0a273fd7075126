"""What the coordinator makes of displacements: duals, gradient steps, or the planned filter.

A rule adds answers up in exact integers (`collect`) and then, once a round, moves the model by a
fixed sequence of correctly rounded operations (`model`). The second result is stored, so that a
coordinator that goes on repeats the first alone.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.methods.admm.packing import unpack_many
from colonnade.methods.admm.spec import MAX_STATE, STEP_UNIT, AdmmSpec
from colonnade.server.methods.admm.state import AdmmState
from colonnade.wire.cohort import ClientAnswers

_STEP_BITS = STEP_UNIT.bit_length() - 1


class Rule(Protocol):
    """How answers move the model."""

    def points(self, state: AdmmState, clients: IntArray, seen: IntArray) -> IntArray:
        """Return what clients are sent who see the rows of ``seen`` as the model."""

    def collect(
        self, state: AdmmState, said: ClientAnswers, seen: IntArray, *, in_place: bool
    ) -> Mapping[str, Any]:
        """Return what answers change in a state, in integers."""

    def model(self, after: AdmmState) -> IntArray:
        """Return the model to which a round leads whose answers have been collected."""

    def opened(self, after: AdmmState, z: IntArray) -> Mapping[str, Any]:
        """Return what changes in a state whose last round led to ``z``."""


@dataclass(frozen=True, slots=True)
class DualRule:
    """Consensus ADMM: clients have duals, and the model is the proximal point of their mean."""

    spec: AdmmSpec

    def points(self, state: AdmmState, clients: IntArray, seen: IntArray) -> IntArray:
        """Return the model reflected at each client's dual."""
        return seen - share(self.spec.dual_gain, state.u.of(clients) - seen)

    def collect(
        self, state: AdmmState, said: ClientAnswers, seen: IntArray, *, in_place: bool
    ) -> Mapping[str, Any]:
        """Return duals and their sum."""
        clients = said.clients
        u = state.u if in_place else state.u.copy()
        before = u.of(clients)
        gap = seen - before + unpack_many(self.spec.code, said.bodies)
        now: IntArray = np.clip(before + share(self.spec.gain, gap), -MAX_STATE, MAX_STATE)
        u.put(clients, now)
        return {"u": u, "total": state.total + (now - before).sum(axis=0)}

    def model(self, after: AdmmState) -> IntArray:
        """Return the consensus of the duals."""
        return self.consensus(after.total)

    def consensus(self, total: IntArray) -> IntArray:
        """Return ``z``, the proximal point of the penalty at the mean of all ``u_i``."""
        spec = self.spec
        mean = total.astype(np.float64) / spec.n_clients * spec.unit
        return penalised(spec, mean, spec.gamma)

    def opened(self, after: AdmmState, z: IntArray) -> Mapping[str, Any]:  # noqa: ARG002
        """Return nothing: the sum of the duals goes on."""
        return {}


@dataclass(frozen=True, slots=True)
class Gradients:
    """Federated DP-SGD: the mean of clipped noisy gradients, with steps that fall as 1/sqrt(t)."""

    spec: AdmmSpec

    def points(self, state: AdmmState, clients: IntArray, seen: IntArray) -> IntArray:  # noqa: ARG002
        """Return the model."""
        return seen

    def collect(
        self,
        state: AdmmState,
        said: ClientAnswers,
        seen: IntArray,  # noqa: ARG002
        *,
        in_place: bool,  # noqa: ARG002
    ) -> Mapping[str, Any]:
        """Return the sum of the round's steps; a late gradient counts as it is."""
        moved = unpacked(self.spec, state.round, said)
        return {"total": state.total + moved.sum(axis=0), "counts": counted(state, said)}

    def model(self, after: AdmmState) -> IntArray:
        """Return the model after a proximal gradient step."""
        spec, closed = self.spec, after.round - 1
        length = 1.0 / math.sqrt(closed)
        mean = after.total.astype(np.float64) / float(after.counts[closed - 1, 0])
        return penalised(spec, (after.z + length * mean) * spec.unit, length * spec.gamma)

    def opened(self, after: AdmmState, z: IntArray) -> Mapping[str, Any]:  # noqa: ARG002
        """Return an empty sum for the next round."""
        return {"total": np.zeros_like(after.total)}


def counted(state: AdmmState, said: ClientAnswers) -> IntArray:
    """Return how many answers and noises moved the model in each round, with these."""
    counts = np.zeros((state.round, 2), np.int64)
    counts[: len(state.counts)] = state.counts
    counts[-1] += (said.clients.size, sum(map(bool, said.bodies)))
    return counts


def unpacked(spec: AdmmSpec, round_: int, said: ClientAnswers) -> IntArray:
    """Return the displacements, of clients or of sums; who is in a sum has no bytes of its own."""
    if spec.maskers:  # what was opened of a secure sum: words
        words = [np.frombuffer(body, "<i8").astype(np.int64) for body in said.bodies if body]
        return np.stack(words) if words else np.empty((0, spec.dim), np.int64)
    return unpack_many(spec.release(round_).code, [body for body in said.bodies if body])


def share(gain: int, vectors: IntArray) -> IntArray:
    """Return ``gain / STEP_UNIT`` of the vectors, rounded half up; all are bounded, below 2**63."""
    return (gain * vectors + STEP_UNIT // 2) >> _STEP_BITS


def penalised(spec: AdmmSpec, point: FloatArray, weight: float) -> IntArray:
    """Return the proximal point of ``weight`` times the penalty, on the grid."""
    moved = spec.penalty.prox(point, np.full(spec.dim, weight), spec.scales)
    # Rounding must not leave the box.
    most = np.where(spec.scales > 0.0, min(MAX_STATE, spec.penalty.bound // spec.unit), MAX_STATE)
    return np.clip(np.rint(moved / spec.unit), -most, most).astype(np.int64)
