"""The coordinator's side of federated ADMM: pure steps over releases, in exact integers.

Everything here is a function of public numbers and of what clients released, so nothing of it is
private. Vectors are integers in grid steps (`admm.spec`); a round adds integers, so the order
of its answers does not matter, and the same answers in the same rounds give the same state, bit for
bit. The one real-number step is a fixed sequence of correctly rounded operations on exact sums, and
its result is stored. What answers do to the model is the variant's rule (`rules`, `planned`).

Rounds and late answers. A client has at most one unanswered task. It keeps the round it was made
in, and with it the ``z`` from which its ``v`` was made; a sampled client that still owes an answer
is asked the same again, which costs it nothing new. With duals its ``u_i`` has not moved meanwhile,
so the answer is applied as if it had come in time, ``u_i <- u_i + 2 lambda (z - u_i + d)`` with the
task's own ``z``, in whichever round the coordinator stored it. A planned job forgets what is owed
when its displacements end and the rounds of the intercept begin. A sum counts in its own drawing
or not at all: asked again it would have other clients in it, so it is asked under a new number,
with new noise and at a new price.

Drawings. A round asks those whom it draws; if they leave it short of the job's minimum, it draws
others in place of those missing, as often as it takes. What was answered so far has moved its
client's dual and counts; nobody answers in one round twice; clients that were asked before in the
round are asked again only when there are no others. The model moves once, when the round has its
minimum, and only that ends a round. A client that declines leaves the job.
"""

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.errors import BadInput
from colonnade.methods.admm.choices import Aggregate, ClientSampling, Variant
from colonnade.methods.admm.recipe import JOINT
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.server.methods.admm.planned import Planned
from colonnade.server.methods.admm.rules import DualRule, Gradients, Rule
from colonnade.server.methods.admm.state import AdmmState, start_state
from colonnade.wire.cohort import ClientAnswers

_RULES: Mapping[Variant, Callable[[AdmmSpec], Rule]] = {
    Variant.PAPER: DualRule,
    Variant.GRADIENT: Gradients,
    Variant.PLANNED: Planned,
}


@dataclass(frozen=True, slots=True)
class AdmmCoordinator:
    """Steps of one job; clients are numbered in the order of the job."""

    spec: AdmmSpec
    hosts: tuple[int, ...] = ()  # clients of each host, where every host must have one asked
    rule: Rule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", _RULES[self.spec.variant](self.spec))

    def start(self, seed: bytes) -> AdmmState:
        """Return the state before round 1: all zero.

        Parameters
        ----------
        seed
            32 bytes from the operating system. Who is sampled follows from it and is as secret as
            it is; no client's own guarantee rests on that.
        """
        variant = self.spec.variant
        extra = 2 if variant is Variant.PLANNED else 0
        duals = variant is Variant.PAPER
        return start_state(self.spec.n_clients, self.spec.dim, seed, duals=duals, extra=extra)

    def finished(self, state: AdmmState) -> bool:
        """Return whether all rounds are done, or too few clients are left for the open one."""
        if state.round > self.spec.rounds:
            return True
        left = int(np.count_nonzero(self._free(state) | state.answered))
        return left < self.spec.cohort(state.round).minimum

    def enough(self, state: AdmmState, more: int = 0) -> bool:
        """Return whether the open round has its minimum with so many answers more."""
        return int(np.count_nonzero(state.answered)) + more >= self._minimum(state)

    def _minimum(self, state: AdmmState) -> int:
        return self.spec.cohort(min(state.round, self.spec.rounds)).minimum

    def sampled(self, state: AdmmState) -> IntArray:
        """Return the clients of the open drawing, in rising order.

        Every client has a uniform 64-bit number in every drawing, and those with the smallest are
        sampled: a fixed count, or all below a threshold (and never fewer than the minimum). A
        further drawing of a round asks for what is missing, and clients that were not asked first.
        """
        spec, free = self.spec, self._free(state) & ~state.answered
        size = spec.cohort(state.round)
        drawn, count = _drawn(state.seed, state.drawing, spec.n_clients), size.sampled
        steps = state.round <= spec.steps  # of the intercept everybody is asked once
        if spec.sampling is ClientSampling.POISSON and steps and count < spec.n_clients:
            threshold = np.uint64((count << 64) // spec.n_clients)
            below = int((drawn[free] < threshold).sum())
            count = min(max(below, size.minimum), spec.max_sampled)
        count -= int(np.count_nonzero(state.answered))
        if self.hosts:
            return _spread(drawn, free, count, self.hosts)
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
        points = self.rule.points(state, clients, self._seen(state, rounds))
        if self._sums:
            return ClientTasks(clients, np.full_like(rounds, state.drawing), points, state.round)
        return ClientTasks(clients, rounds, points)

    @property
    def _sums(self) -> bool:
        """Whether answers are sums: a drawing's belong to it alone and are never asked again."""
        return self.spec.aggregate is not Aggregate.NONE

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
            owed[asked[owed[asked] == 0]] = state.drawing if self._sums else state.round
        return owed

    def check(self, expected: IntArray, said: ClientAnswers, size: int = 0) -> None:
        """Raise `BadInput` unless all that was said is ``expected`` and has the right size.

        Parameters
        ----------
        expected
            For each client the round of its question, or 0; of all clients, or of those of one
            party if the party numbers them.
        size
            Of an answer; by default of a displacement.
        """
        known = (said.clients >= 0) & (said.clients < expected.size)
        asked = np.where(known, expected[np.where(known, said.clients, 0)], 0)
        if (wrong := np.flatnonzero((asked != said.rounds) | (asked == 0))).size:
            client, round_ = int(said.clients[wrong[0]]), int(said.rounds[wrong[0]])
            raise BadInput(f"client {client} was not asked for round {round_}")
        size = size or self.spec.body_bytes
        # Who is in a sum has no bytes of its own.
        if other := set(map(len, said.bodies)) - ({size, 0} if self._sums else {size}):
            raise BadInput(f"an answer has {min(other)} bytes instead of {size}")
        if said.bodies and not any(said.bodies):
            raise BadInput("a sum has no bytes")

    def absorb(self, state: AdmmState, said: ClientAnswers, *, in_place: bool = False) -> AdmmState:
        """Close the drawing: apply what was stored while it was open, late answers included.

        With the minimum the model moves and the round is done; else a further drawing follows.

        Parameters
        ----------
        in_place
            Write over the duals of ``state``, which is of no use then: there may be many clients,
            and few of them answer.
        """
        after = self._collected(state, said, in_place=in_place)
        if after.round == state.round:
            return after
        return self._opened(after, self.rule.model(after))

    def replay(
        self, state: AdmmState, said: ClientAnswers, z: IntArray, *, in_place: bool = False
    ) -> AdmmState:
        """Return what `absorb` returned when it found ``z``; all that is computed are integers."""
        after = self._collected(state, said, in_place=in_place)
        return after if after.round == state.round else self._opened(after, z)

    def _collected(self, state: AdmmState, said: ClientAnswers, *, in_place: bool) -> AdmmState:
        """Return the state with the answers in it, and as yet the model of before."""
        owed = self.expected(state)
        clients, rounds = said.clients, said.rounds
        if np.unique(clients).size != clients.size or np.any(owed[clients] != rounds):
            raise ValueError("an answer was not asked for; answers are checked before")
        if self._sums:
            said = replace(said, rounds=np.full_like(rounds, state.round))
        seen = self._seen(state, said.rounds)
        changes = self.rule.collect(state, said, seen, in_place=in_place)
        counter = "taken" if state.round <= self.spec.steps else "intercepts"
        taken = getattr(state, counter).copy()
        taken[clients] += 1
        owed[clients] = 0
        done = self.enough(state, clients.size)
        answered = np.zeros_like(state.answered) if done else state.answered.copy()
        answered[clients] = not done
        if self._sums or (done and state.round == self.spec.steps):
            owed[:] = 0
        after = replace(
            state,
            **changes,
            round=state.round + done,
            drawing=state.drawing + 1,
            owed=owed,
            answered=answered,
            past=_kept({**state.past, state.round: state.z}, owed),
            **{counter: taken},
        )
        return self.decline(after, *said.declined.tolist()) if said.declined.size else after

    def _opened(self, after: AdmmState, z: IntArray) -> AdmmState:
        """Return the state after a round that led to ``z``."""
        return replace(after, **self.rule.opened(after, z), z=z)

    def coefficients(self, state: AdmmState) -> FloatArray:
        """Return the model on scaled features, the intercept last if the job has one."""
        coef = state.z[: self.spec.dim].astype(np.float64) * self.spec.unit
        if self.spec.variant is Variant.PLANNED:
            coef[-1] /= JOINT
        return coef

    def _seen(self, state: AdmmState, rounds: IntArray) -> IntArray:
        """Return the ``z`` from which the tasks of ``rounds`` were made, one in a row."""
        known = {**state.past, state.round: state.z}
        places = np.searchsorted(sorted(known), rounds)
        seen: IntArray = np.stack([known[round_] for round_ in sorted(known)])[places]
        return seen

    def _free(self, state: AdmmState) -> NDArray[np.bool_]:
        """Return which clients may be asked."""
        taken = state.taken if state.round <= self.spec.steps else state.intercepts
        limit = self.spec.cohort(min(state.round, self.spec.rounds)).limit
        return ~state.declined & (taken < limit)


@functools.lru_cache(maxsize=2)  # a drawing is looked at several times
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


def _spread(
    drawn: NDArray[np.uint64], free: NDArray[np.bool_], count: int, hosts: tuple[int, ...]
) -> IntArray:
    """Return the smallest of each host, in proportion to its clients and one at least.

    So hosts run out of clients that may be asked at the same time, and none is without one before.
    """
    sizes, ends = np.array(hosts), np.cumsum(hosts)
    quota = np.maximum(1, count * sizes // sizes.sum())
    first = ends - sizes
    order = np.argsort(drawn[first], kind="stable")
    quota[order[: max(0, count - int(quota.sum()))]] += 1
    each = zip(first.tolist(), ends.tolist(), quota.tolist(), strict=True)
    return np.concatenate(
        [_smallest(drawn, a + np.flatnonzero(free[a:b]), wanted) for a, b, wanted in each]
    )


def _kept(past: Mapping[int, IntArray], owed: IntArray) -> dict[int, IntArray]:
    """Keep the ``z`` of rounds that are still owed an answer."""
    return {round_: past[round_] for round_ in np.unique(owed[owed > 0]).tolist()}
