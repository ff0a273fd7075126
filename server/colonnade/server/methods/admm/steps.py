"""The coordinator's side of federated ADMM: pure steps over releases, in exact integers.

Everything here is a function of public numbers and of what clients released, so nothing of it is
private. Vectors are integers in grid steps (`admm.spec`); a round adds integers, so the order
of its answers does not matter, and the same answers in the same rounds give the same state, bit for
bit. The one real-number step, the penalty's proximal map, is a fixed sequence of correctly rounded
operations on the exact sum of all ``u_i``.

Rounds and late answers. A client has at most one unanswered task. It keeps the round it was made
in, and with it the ``z`` from which its ``v`` was made; a sampled client that still owes an answer
is asked the same again, which costs it nothing new. Its ``u_i`` has not moved meanwhile, so the
answer is applied as if it had come in time, ``u_i <- u_i + 2 lambda (z - u_i + d)`` with the task's
own ``z``, in whichever round the coordinator stored it.

Drawings. A round asks those whom it draws; if they leave it short of the job's minimum, it draws
others in place of those missing, as often as it takes. What was answered so far has moved its
client's dual and counts; nobody answers in one round twice; clients that were asked before in the
round are asked again only when there are no others. The model moves once, when the round has its
minimum, and only that ends a round. A client that declines leaves the job.
"""

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.errors import BadInput
from colonnade.methods.admm.packing import unpack_many
from colonnade.methods.admm.spec import MAX_STATE, STEP_UNIT, AdmmSpec, Sampling
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.server.methods.admm.state import AdmmState, start_state
from colonnade.wire.cohort import ClientAnswers

_STEP_BITS = STEP_UNIT.bit_length() - 1


@dataclass(frozen=True, slots=True)
class AdmmCoordinator:
    """Steps of one job; clients are numbered in the order of the job."""

    spec: AdmmSpec

    def start(self, seed: bytes) -> AdmmState:
        """Return the state before round 1: all zero.

        Parameters
        ----------
        seed
            32 bytes from the operating system. Who is sampled follows from it and is as secret as
            it is; no client's own guarantee rests on that.
        """
        return start_state(self.spec.n_clients, self.spec.dim, seed)

    def finished(self, state: AdmmState) -> bool:
        """Return whether all rounds are done, or too few clients are left for the open one."""
        left = int(np.count_nonzero(self._free(state) | state.answered))
        return state.round > self.spec.rounds or left < self.spec.minimum

    def enough(self, state: AdmmState, more: int = 0) -> bool:
        """Return whether the open round has its minimum with so many answers more."""
        return int(np.count_nonzero(state.answered)) + more >= self.spec.minimum

    def sampled(self, state: AdmmState) -> IntArray:
        """Return the clients of the open drawing, in rising order.

        Every client has a uniform 64-bit number in every drawing, and those with the smallest are
        sampled: a fixed count, or all below a threshold (and never fewer than the minimum). A
        further drawing of a round asks for what is missing, and clients that were not asked first.
        """
        spec, free = self.spec, self._free(state) & ~state.answered
        drawn, count = _drawn(state.seed, state.drawing, spec.n_clients), spec.sampled
        if spec.sampling is Sampling.POISSON and spec.sampled < spec.n_clients:
            threshold = np.uint64((spec.sampled << 64) // spec.n_clients)
            below = int((drawn[free] < threshold).sum())
            count = min(max(below, spec.minimum), spec.max_sampled)
        count -= int(np.count_nonzero(state.answered))
        asked = state.owed == state.round
        first = _smallest(drawn, np.flatnonzero(free & ~asked), count)
        if first.size == count or not asked.any():
            return first
        again = _smallest(drawn, np.flatnonzero(free & asked), count - first.size)
        return np.sort(np.concatenate([first, again]))

    def spares(self, state: AdmmState) -> bool:
        """Return whether the open round could ask somebody whom it has not asked."""
        fresh = self._free(state) & ~state.answered & (state.owed != state.round)
        fresh[self.sampled(state)] = False
        return bool(fresh.any())

    def tasks(self, state: AdmmState) -> ClientTasks:
        """Return what to ask of whom; nobody, if all rounds are done."""
        if self.finished(state):
            nobody = np.empty(0, np.int64)
            return ClientTasks(nobody, nobody, np.empty((0, self.spec.dim), np.int64))
        clients = self.sampled(state)
        rounds = np.where(state.owed[clients] > 0, state.owed[clients], state.round)
        z = self._seen(state, rounds)
        return ClientTasks(clients, rounds, z - share(self.spec.dual_gain, state.u[clients] - z))

    def decline(self, state: AdmmState, *clients: int) -> AdmmState:
        """Let clients go: they are asked nothing more, and what they owe is forgotten."""
        for client in clients:
            if not 0 <= client < self.spec.n_clients:
                raise BadInput(f"there is no client {client} in the job")
        declined, owed, gone = state.declined.copy(), state.owed.copy(), list(clients)
        declined[gone], owed[gone] = True, 0
        return replace(state, declined=declined, owed=owed, past=_kept(state.past, owed))

    def expected(self, state: AdmmState) -> IntArray:
        """Return, for each client, the round of the task that it owes an answer to, or 0."""
        owed = state.owed.copy()
        if not self.finished(state):
            asked = self.sampled(state)
            owed[asked[owed[asked] == 0]] = state.round
        return owed

    def check(self, expected: IntArray, said: ClientAnswers) -> None:
        """Raise `BadInput` unless all that was said is ``expected`` and has the right size.

        Parameters
        ----------
        expected
            For each client the round of its question, or 0; of all clients, or of those of one
            party if the party numbers them.
        """
        known = (said.clients >= 0) & (said.clients < expected.size)
        asked = np.where(known, expected[np.where(known, said.clients, 0)], 0)
        if (wrong := np.flatnonzero((asked != said.rounds) | (asked == 0))).size:
            client, round_ = int(said.clients[wrong[0]]), int(said.rounds[wrong[0]])
            raise BadInput(f"client {client} was not asked for round {round_}")
        size = self.spec.body_bytes
        if other := set(map(len, said.bodies)) - {size}:
            raise BadInput(f"an answer has {min(other)} bytes instead of {size}")

    def absorb(self, state: AdmmState, said: ClientAnswers, *, in_place: bool = False) -> AdmmState:
        """Close the drawing: apply what was stored while it was open, late answers included.

        With the minimum the model moves and the round is done; else a further drawing follows.

        Parameters
        ----------
        in_place
            Write over the duals of ``state``, which is of no use then: there may be many clients,
            and few of them answer.
        """
        after = self.replay(state, said, state.z, in_place=in_place)
        if after.round == state.round:
            return after
        return replace(after, z=self.consensus(after.total))

    def replay(
        self, state: AdmmState, said: ClientAnswers, z: IntArray, *, in_place: bool = False
    ) -> AdmmState:
        """Return what `absorb` returned when it found ``z``; all that is computed are integers."""
        spec, owed = self.spec, self.expected(state)
        clients, rounds = said.clients, said.rounds
        if np.unique(clients).size != clients.size or np.any(owed[clients] != rounds):
            raise ValueError("an answer was not asked for; answers are checked before")
        moved = unpack_many(spec.code, said.bodies)
        u, taken = state.u if in_place else state.u.copy(), state.taken.copy()
        before = u[clients]
        gap = self._seen(state, rounds) - before + moved
        u[clients] = now = np.clip(before + share(spec.gain, gap), -MAX_STATE, MAX_STATE)
        taken[clients] += 1
        owed[clients] = 0
        done = self.enough(state, clients.size)
        answered = np.zeros_like(state.answered) if done else state.answered.copy()
        answered[clients] = not done
        after = replace(
            state,
            round=state.round + done,
            drawing=state.drawing + 1,
            z=z,
            total=state.total + (now - before).sum(axis=0),
            u=u,
            taken=taken,
            owed=owed,
            answered=answered,
            past=_kept({**state.past, state.round: state.z}, owed),
        )
        return self.decline(after, *said.declined.tolist()) if said.declined.size else after

    def coefficients(self, state: AdmmState) -> FloatArray:
        """Return the model on scaled features, the intercept last if the job has one."""
        return state.z.astype(np.float64) * self.spec.unit

    def consensus(self, total: IntArray) -> IntArray:
        """Return ``z``, the proximal point of the penalty at the mean of all ``u_i``."""
        spec = self.spec
        mean = total.astype(np.float64) / spec.n_clients * spec.unit
        point = spec.penalty.prox(mean, np.full(spec.dim, spec.gamma), spec.scales)
        # Rounding must not leave the box.
        most = np.where(
            spec.scales > 0.0, min(MAX_STATE, spec.penalty.bound // spec.unit), MAX_STATE
        )
        return np.clip(np.rint(point / spec.unit), -most, most).astype(np.int64)

    def _seen(self, state: AdmmState, rounds: IntArray) -> IntArray:
        """Return the ``z`` from which the tasks of ``rounds`` were made, one in a row."""
        known = {**state.past, state.round: state.z}
        places = np.searchsorted(sorted(known), rounds)
        seen: IntArray = np.stack([known[round_] for round_ in sorted(known)])[places]
        return seen

    def _free(self, state: AdmmState) -> NDArray[np.bool_]:
        """Return which clients may be asked."""
        return ~state.declined & (state.taken < self.spec.max_participations)


@functools.lru_cache(maxsize=4)  # a drawing is looked at several times
def _drawn(seed: bytes, drawing: int, count: int) -> NDArray[np.uint64]:
    """Return a uniform 64-bit number for each client."""
    name = b"colonnade admm sampling\0" + seed + drawing.to_bytes(8, "little")
    return np.frombuffer(hashlib.shake_256(name).digest(8 * count), "<u8")


def _smallest(drawn: NDArray[np.uint64], pool: IntArray, count: int) -> IntArray:
    """Return the ``count`` of ``pool`` with the smallest numbers, or all, in rising order."""
    if count >= pool.size:
        return pool
    numbers = drawn[pool]
    least: IntArray = pool[numbers <= np.partition(numbers, count - 1)[count - 1]][:count]
    return least


def share(gain: int, vectors: IntArray) -> IntArray:
    """Return ``gain / STEP_UNIT`` of the vectors, rounded half up; all are bounded, below 2**63."""
    return (gain * vectors + STEP_UNIT // 2) >> _STEP_BITS


def _kept(past: Mapping[int, IntArray], owed: IntArray) -> dict[int, IntArray]:
    """Keep the ``z`` of rounds that are still owed an answer."""
    return {round_: past[round_] for round_ in np.unique(owed[owed > 0]).tolist()}
