"""A party's side of an alignment: one answer a round, the same bytes at every retry.

Privacy: holds if the other parties follow the protocol, against the coordinator alone or against
other parties alone (`methods.alignment.dummies`). What is sent are points under fresh secrets of
this run, tags under the secrets of all parties, and a length with dummies in it. A chunk is
multiplied only if its owner signed it within the length that the owner signed, and once: a round
that was answered is answered again for the same task only.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import (
    BadMessage,
    JobClosed,
    PolicyRefused,
    RequestConflict,
)
from colonnade.ledger.receipts import Signer, verify
from colonnade.methods.alignment import codec, sizes
from colonnade.methods.alignment.crypto import exchange
from colonnade.methods.alignment.crypto.canary import Rows, same_mac
from colonnade.methods.alignment.crypto.chain import check_chain, extend
from colonnade.methods.alignment.crypto.curve import draw_scalars, multiply
from colonnade.methods.alignment.crypto.dummies import PatternDummies, first_member, patterns_led_by
from colonnade.methods.alignment.crypto.points import check_points, points_from_bytes
from colonnade.methods.alignment.refusals import CanaryMismatch
from colonnade.methods.alignment.schedule import (
    FIRST_WAVE,
    AlignmentStage,
    RoundSchedule,
    opening_stage,
)
from colonnade.methods.alignment.spec import NO_ROW, AlignmentSpec
from colonnade.party.methods.alignment.lists import Earlier, ListedPeople
from colonnade.party.methods.alignment.own_list import OwnList
from colonnade.party.methods.alignment.state import PartyState, Secrets
from colonnade.privacy.sampling import NoiseSource
from colonnade.v1 import alignment_pb2 as pb

Answer = tuple[PartyState, dict[str, bytes]]

# The fields that a task may have besides its round.
_FIELDS = {
    AlignmentStage.KEYS: set[str](),
    AlignmentStage.SEEDS: {"keys"},
    AlignmentStage.COUNTS: {"boxes"},
    AlignmentStage.WAVE: {"counts", "segments"},
    AlignmentStage.ROWS: {"rows"},
    AlignmentStage.CONFIRM: {"macs"},
}


class AlignmentParty:
    """The steps of one party in one run.

    Parameters
    ----------
    ids
        Distinct, in the form that the specification's rule gives them (`normalise.prepare`).
    earlier
        For an extension: the rows that the alignment before gave.
    attestor
        Signs with the party's certificate that it takes part, and checks that the others do.
    """

    def __init__(
        self,
        spec: AlignmentSpec,
        party: str,
        signer: Signer,
        ids: Sequence[bytes],
        earlier: Earlier | None = None,
        *,
        attestor: exchange.Attestor,
    ) -> None:
        self._spec, self._place, self._signer = spec, spec.place(party), signer
        self._attestor = attestor
        self._others = [at for at in range(spec.n_parties) if at != self._place]
        self._run, self._people = codec.run_name(spec), ListedPeople.of(ids, earlier)
        self._list = OwnList(spec, self._place, self._run, signer, self._people)
        self._people.check(spec, self._place)
        trial = b"colonnade alignment signer v1\0" + self._run
        if not verify(spec.parts[self._place].public_key, signer.sign(trial), trial):
            raise PolicyRefused(
                f"the specification names another signing key of {party}; have the operator make "
                "it again from the enrolled keys"
            )

    def start(self, noise: NoiseSource, entropy: Callable[[int], bytes]) -> PartyState:
        """Draw the run's secrets. The state must be durable before the first answer is sent."""
        zeros = np.zeros(self.n_led, np.int64)
        return self.start_with(self._spec.noise.perturb(zeros, noise), entropy)

    @property
    def n_led(self) -> int:
        """How many sets of parties this one leads, and so draws dummies for."""
        return len(patterns_led_by(self._place, self._spec.n_parties))

    def start_with(self, counts: IntArray, entropy: Callable[[int], bytes]) -> PartyState:
        """Draw the run's secrets beside numbers of dummies that were drawn."""
        seed = entropy(32)
        led = patterns_led_by(self._place, self._spec.n_parties)
        dummies = tuple(
            PatternDummies(pattern, _derive(seed, b"dummies %d" % pattern), int(count))
            for pattern, count in zip(led, counts, strict=True)
        )
        secrets = Secrets(draw_scalars(entropy), entropy(32), seed, dummies)
        return PartyState(self._run, secrets, self._people.mac(seed))

    def answer(self, state: PartyState, task: bytes) -> Answer:
        """Answer a task: return the next state, to be stored first, and the bodies by kind."""
        if state.run != self._run:
            raise BadMessage("the state is that of another alignment")
        message = codec.from_bytes(pb.AlignmentTask, task, "a task of the alignment")
        digest, answered = hashlib.sha256(task).digest(), len(state.tasks)
        if message.round > answered:
            raise BadMessage(f"round {message.round} was asked before round {answered}")
        if message.round < answered and state.tasks[message.round] != digest:
            raise RequestConflict(f"round {message.round} was answered for another task")
        if state.secrets is None:
            if message.round != answered - 1:
                raise JobClosed("the alignment has ended and its secrets are erased")
            return state, {sizes.ACCEPTED: _accepted()}
        after, bodies = self._step(state, state.secrets, message)
        if message.round < answered:
            return state, bodies
        return replace(after, tasks=(*state.tasks, digest)), bodies

    def rows(self, state: PartyState) -> Rows:
        """Return the row of each id, ``NO_ROW`` for those whom the mode leaves out."""
        if not state.ended:
            raise ValueError("the alignment has not ended")
        return np.frombuffer(state.rows, "<u4").astype(np.uint32)

    def earlier(self, state: PartyState, rows: Rows) -> Earlier:
        """Return what an extension needs of this run, for ids that had ``rows`` in it."""
        carried_rows = np.frombuffer(state.carried_rows, "<u4").astype(np.uint32)
        return Earlier(rows, state.carried, carried_rows)

    def _step(self, state: PartyState, secrets: Secrets, task: pb.AlignmentTask) -> Answer:
        if task.round == FIRST_WAVE:
            state = self._with_counts(state, task)
        schedule = RoundSchedule(self._spec, state.counts)
        stage = opening_stage(task.round) or schedule.stage(task.round)
        if not {field.name for field, _ in task.ListFields()} <= _FIELDS[stage] | {"round"}:
            raise BadMessage(f"a task of {stage.value} has fields of another stage")
        if stage is AlignmentStage.KEYS:
            return state, {sizes.KEYS: self._key(secrets)}
        if stage is AlignmentStage.SEEDS:
            return self._seeds(state, secrets, task)
        if stage is AlignmentStage.COUNTS:
            return self._count(state, secrets, task)
        if stage is AlignmentStage.WAVE:
            return state, self._wave(state, secrets, schedule, task)
        if stage is AlignmentStage.ROWS:
            return self._take_rows(state, secrets, schedule, task)
        return self._confirm(state, secrets, task)

    def _key(self, secrets: Secrets) -> bytes:
        public = exchange.public_half(secrets.exchange)
        signed = exchange.sign_key(self._signer, self._attestor, self._run, self._place, public)
        return codec.to_bytes(codec.key_to_proto(signed))

    def _seeds(self, state: PartyState, secrets: Secrets, task: pb.AlignmentTask) -> Answer:
        """Seal the dummies of the sets that this party leads to their other members."""
        keys = codec.keys_from_proto(task.keys)
        exchange.check_keys(self._spec, self._run, keys)
        if keys[self._place].public_key != exchange.public_half(secrets.exchange):
            raise BadMessage("a task names another key of this party than it sent")
        exchange.check_attestations(self._spec, self._run, keys, self._attestor)
        state = replace(state, keys=tuple(key.public_key for key in keys))
        led = [d for d in secrets.dummies if first_member(d.pattern) == self._place]
        boxes = [
            exchange.seal_dummies(self._list.pair(state, secrets, other), led, other)
            for other in range(self._place + 1, self._spec.n_parties)
        ]
        return state, {sizes.SEEDS: codec.to_bytes(pb.AlignmentBoxes(boxes=boxes))}

    def _count(self, state: PartyState, secrets: Secrets, task: pb.AlignmentTask) -> Answer:
        """Open the boxes of earlier parties and sign the length of the whole list."""
        if len(task.boxes) != self._place:
            raise BadMessage("a task has another number of boxes than there are earlier parties")
        dummies = [d for d in secrets.dummies if first_member(d.pattern) == self._place]
        for sender, box in enumerate(task.boxes):
            pair = self._list.pair(state, secrets, sender)
            dummies += exchange.open_dummies(
                pair, box, self._spec, sender=sender, receiver=self._place
            )
        count = len(self._people) + sum(d.count for d in dummies) + self._spec.n_canaries
        signed = exchange.sign_count(self._signer, self._run, self._place, count)
        state = replace(state, secrets=replace(secrets, dummies=tuple(dummies)))
        return state, {sizes.COUNT: codec.to_bytes(codec.count_to_proto(signed))}

    def _with_counts(self, state: PartyState, task: pb.AlignmentTask) -> PartyState:
        counts = codec.counts_from_proto(task.counts)
        exchange.check_counts(self._spec, self._run, counts)
        return replace(state, counts=tuple(count.count for count in counts))

    def _wave(
        self, state: PartyState, secrets: Secrets, schedule: RoundSchedule, task: pb.AlignmentTask
    ) -> dict[str, bytes]:
        """Send a chunk of the own list, multiply the others', send tags of what came back."""
        visits = schedule.visits(task.round, self._place)
        given = [visit for visit in visits if visit.hop]
        segments = [codec.segment_from_proto(message) for message in task.segments]
        if len(segments) != len(given):
            raise BadMessage("a task has another number of chunks than its round")
        for visit, segment in zip(given, segments, strict=True):  # all, before any work
            check_chain(schedule, self._run, visit, segment)
            check_points(points_from_bytes(segment.points))
        bodies, hops = {}, []
        if visits and visits[0].hop == 0:
            own = self._list.own(state, secrets, visits[0])
            bodies[sizes.POINTS] = codec.segments_to_bytes([own])
        for visit, segment in zip(given, segments, strict=True):
            if visit.hop == self._spec.n_parties:
                bodies[sizes.TAGS] = self._list.tags(state, secrets, visit, segment)
            else:
                points = multiply(secrets.scalars.secret, points_from_bytes(segment.points))
                signed = extend(self._signer, self._run, visit, points.tobytes(), segment.proofs)
                hops.append(signed)
        return bodies | ({sizes.HOPS: codec.segments_to_bytes(hops)} if hops else {})

    def _take_rows(
        self, state: PartyState, secrets: Secrets, schedule: RoundSchedule, task: pb.AlignmentTask
    ) -> Answer:
        """Keep the rows of the own list; after the last, confirm those of the canaries."""
        told, before = task.rows, state.list_rows
        first, last = schedule.row_range(task.round, self._place)
        same = not before or (told.n_rows, told.kept) == (state.n_rows, state.kept)
        if (told.first, len(told.rows)) != (first, sizes.ROW_BYTES * (last - first)) or not same:
            raise BadMessage("a task tells other rows than its round")
        rows = before[: sizes.ROW_BYTES * first] + told.rows + before[sizes.ROW_BYTES * last :]
        state = replace(state, list_rows=rows, n_rows=told.n_rows, kept=told.kept)
        if not schedule.confirms(task.round):
            return state, {}
        assigned = self._list.assigned(state, secrets)
        macs = b"".join(
            self._list.mac(state, secrets, assigned, other, sends=True) for other in self._others
        )
        return state, {sizes.CONFIRM: codec.to_bytes(pb.AlignmentConfirmation(macs=macs))}

    def _confirm(self, state: PartyState, secrets: Secrets, task: pb.AlignmentTask) -> Answer:
        """Accept the rows if all others had the same for the canaries, and erase the secrets."""
        assigned = self._list.assigned(state, secrets)
        if len(task.macs) != sizes.MAC_BYTES * len(self._others):
            raise BadMessage("a task has another number of confirmations than there are parties")
        for at, other in enumerate(self._others):
            given = task.macs[at * sizes.MAC_BYTES : (at + 1) * sizes.MAC_BYTES]
            if not same_mac(given, self._list.mac(state, secrets, assigned, other, sends=False)):
                raise CanaryMismatch(
                    f"{self._spec.parts[other].party} and this party were given different rows for "
                    "ids that both list; some list was spoiled, so run the alignment again"
                )
        n_people = len(self._people.ids)
        rows = np.where(assigned < state.kept, assigned, NO_ROW).astype("<u4")
        carried = n_people + np.flatnonzero(rows[n_people:] != NO_ROW)
        entries = self._list.made(state, secrets).entries
        self._list.forget()
        done = PartyState(
            self._run,
            None,
            b"",
            state.tasks,
            n_rows=state.n_rows,
            kept=state.kept,
            rows=rows[:n_people].tobytes(),
            carried=tuple(entries[at] for at in carried.tolist()),
            carried_rows=rows[carried].tobytes(),
        )
        return done, {sizes.ACCEPTED: _accepted()}


def _derive(seed: bytes, label: bytes) -> bytes:
    return hmac.digest(seed, label, "sha256")


def _accepted() -> bytes:
    return codec.to_bytes(pb.AlignmentAccepted(accepted=True))
