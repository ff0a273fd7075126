"""The coordinator's side of an alignment: pure steps from state to tasks, from answers to state.

The coordinator relays chunks, matches tags and draws the rows' order. It holds no secret of the
parties and multiplies nothing. It checks sizes, signatures and points before it takes an answer, so
that the party at fault is named and not its neighbour. Tags are dropped when the rows are drawn.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from colonnade.core.errors import BadMessage
from colonnade.methods.alignment import sizes
from colonnade.methods.alignment.codec import (
    count_to_proto,
    counts_from_proto,
    from_bytes,
    key_to_proto,
    keys_from_proto,
    run_name,
    segment_to_proto,
    segments_from_bytes,
    to_bytes,
)
from colonnade.methods.alignment.crypto.chain import check_chain
from colonnade.methods.alignment.crypto.exchange import check_count, check_key
from colonnade.methods.alignment.crypto.points import check_points, points_from_bytes
from colonnade.methods.alignment.schedule import (
    FIRST_WAVE,
    AlignmentStage,
    RoundSchedule,
    Visit,
    opening_stage,
)
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.methods.alignment.union import Overlap, match, pattern_counts, place
from colonnade.privacy.sampling import NoiseSource
from colonnade.server.methods.alignment_state import CoordinatorState
from colonnade.v1 import alignment_pb2 as pb

Bodies = Mapping[str, bytes]  # by kind


@dataclass(frozen=True, slots=True)
class AlignmentResult:
    """What is left of a run at the coordinator."""

    n_rows: int
    kept: int
    overlap: Overlap


@dataclass(frozen=True, slots=True)
class Alignment:
    """The coordinator's steps of one run."""

    spec: AlignmentSpec
    run: bytes

    @classmethod
    def of(cls, spec: AlignmentSpec) -> "Alignment":
        """Return the steps of a specification."""
        return cls(spec, run_name(spec))

    def start(self, noise: NoiseSource, entropy: Callable[[int], bytes]) -> CoordinatorState:
        """Draw the seed of the rows' order, the phantoms and the noise of the report."""
        law, n_patterns = self.spec.noise, (1 << self.spec.n_parties) - 1
        phantoms = law.phantoms().perturb(np.zeros(1, np.int64), noise)
        report = law.report().perturb(np.zeros(n_patterns, np.int64), noise)
        return CoordinatorState(
            self.run, entropy(32), int(phantoms[0]), tuple(int(each) for each in report)
        )

    def finished(self, state: CoordinatorState) -> bool:
        """Return whether all rounds are done."""
        return state.round > FIRST_WAVE and state.round == self._schedule(state).rounds

    def result(self, state: CoordinatorState) -> AlignmentResult:
        """Return the outcome of a finished run."""
        overlap = Overlap(self.spec.n_parties, state.overlap)
        return AlignmentResult(state.n_rows, state.kept, overlap)

    def tasks(self, state: CoordinatorState) -> dict[str, bytes]:
        """Return the round's task for every party; the same bytes whenever it is asked."""
        places = range(self.spec.n_parties)
        return {self.spec.parts[at].party: to_bytes(self._task(state, at)) for at in places}

    def check(self, state: CoordinatorState, party: str, bodies: Bodies) -> None:
        """Refuse an answer that does not have the kinds, sizes and signatures of the round."""
        at, stage = self.spec.place(party), self._stage(state)
        if stage is AlignmentStage.COUNTS:
            self._check_count(at, bodies)
            return
        expected = sizes.answer_bytes(self.spec, at, state.round, state.lengths or None)
        if {kind: len(body) for kind, body in bodies.items()} != expected:
            raise BadMessage(f"the answer of {party} has other kinds or sizes than its round")
        if stage is AlignmentStage.KEYS:
            message = from_bytes(pb.AlignmentKey, bodies[sizes.KEYS], "a key")
            check_key(self.spec, self.run, at, keys_from_proto([message])[0])
        elif stage is AlignmentStage.SEEDS:
            boxes = from_bytes(pb.AlignmentBoxes, bodies[sizes.SEEDS], "a body of boxes").boxes
            if any(len(box) != sizes.box_bytes(self.spec, at) for box in boxes):
                raise BadMessage(f"a box of {party} has another size than it must")
        elif stage is AlignmentStage.WAVE:
            self._check_wave(state, at, bodies)
        elif stage is AlignmentStage.CONFIRM:
            from_bytes(pb.AlignmentAccepted, bodies[sizes.ACCEPTED], "an acceptance")
        elif sizes.CONFIRM in bodies:
            from_bytes(pb.AlignmentConfirmation, bodies[sizes.CONFIRM], "a confirmation")

    def absorb(self, state: CoordinatorState, answers: Mapping[str, Bodies]) -> CoordinatorState:
        """Return the state after a round whose answers were checked."""
        bodies = [answers[part.party] for part in self.spec.parts]
        stage, after = self._stage(state), replace(state, round=state.round + 1)
        if stage is AlignmentStage.KEYS:
            keys = [from_bytes(pb.AlignmentKey, each[sizes.KEYS], "a key") for each in bodies]
            return replace(after, keys=keys_from_proto(keys))
        if stage is AlignmentStage.SEEDS:
            boxes = [
                from_bytes(pb.AlignmentBoxes, each[sizes.SEEDS], "a body of boxes").boxes
                for each in bodies
            ]
            read = tuple(replace(key, attestation=b"") for key in state.keys)
            return replace(after, boxes=tuple(map(tuple, boxes)), keys=read)
        if stage is AlignmentStage.COUNTS:
            counts = [
                from_bytes(pb.AlignmentCount, each[sizes.COUNT], "a length") for each in bodies
            ]
            return replace(after, counts=counts_from_proto(counts), boxes=())
        if stage is AlignmentStage.WAVE:
            return self._absorb_wave(after, bodies)
        if stage is AlignmentStage.ROWS:
            return self._absorb_confirmations(after, bodies)
        return replace(after, blobs={}, confirmations=())

    def _schedule(self, state: CoordinatorState) -> RoundSchedule:
        return RoundSchedule(self.spec, state.lengths)

    def _stage(self, state: CoordinatorState) -> AlignmentStage:
        return opening_stage(state.round) or self._schedule(state).stage(state.round)

    def _task(self, state: CoordinatorState, at: int) -> pb.AlignmentTask:
        task, stage, n = (
            pb.AlignmentTask(round=state.round),
            self._stage(state),
            self.spec.n_parties,
        )
        if stage is AlignmentStage.SEEDS:
            task.keys.extend(map(key_to_proto, state.keys))
        elif stage is AlignmentStage.COUNTS:
            task.boxes.extend(state.boxes[sender][at - sender - 1] for sender in range(at))
        elif stage is AlignmentStage.WAVE:
            if state.round == FIRST_WAVE:
                task.counts.extend(map(count_to_proto, state.counts))
            for visit in self._schedule(state).visits(state.round, at):
                if visit.hop:
                    task.segments.add().ParseFromString(state.blobs[_segment_name(visit)])
        elif stage is AlignmentStage.ROWS:
            first, last = self._schedule(state).row_range(state.round, at)
            rows = state.blobs[f"rows/{at}"][sizes.ROW_BYTES * first : sizes.ROW_BYTES * last]
            told = pb.AlignmentRows(n_rows=state.n_rows, kept=state.kept, first=first, rows=rows)
            task.rows.CopyFrom(told)
        elif stage is AlignmentStage.CONFIRM:
            senders = [sender for sender in range(n) if sender != at]
            task.macs = b"".join(_mac_for(state.confirmations[s], s, at) for s in senders)
        return task

    def _check_count(self, at: int, bodies: Bodies) -> None:
        party = self.spec.parts[at].party
        if bodies.keys() != {sizes.COUNT}:
            raise BadMessage(f"the answer of {party} has other kinds than its round")
        message = from_bytes(pb.AlignmentCount, bodies[sizes.COUNT], "a length")
        check_count(self.spec, self.run, at, counts_from_proto([message])[0])

    def _check_wave(self, state: CoordinatorState, at: int, bodies: Bodies) -> None:
        schedule = self._schedule(state)
        visits = schedule.visits(state.round, at)
        for kind in (sizes.POINTS, sizes.HOPS):
            wanted = [v for v in visits if v.hop < self.spec.n_parties and _kind(v) == kind]
            segments = segments_from_bytes(bodies.get(kind, b""))
            if len(segments) != len(wanted):
                raise BadMessage("an answer has another number of chunks than its round")
            for visit, segment in zip(wanted, segments, strict=True):
                onward = Visit(visit.owner, visit.chunk, visit.hop + 1)
                check_chain(schedule, self.run, onward, segment)
                check_points(points_from_bytes(segment.points))
        if sizes.TAGS in bodies:
            tags = from_bytes(pb.AlignmentTags, bodies[sizes.TAGS], "a body of tags")
            size = schedule.size(at, tags.chunk)
            if tags.chunk != visits[-1].chunk or len(tags.tags) != sizes.TAG_BYTES * size:
                raise BadMessage("an answer has tags of another chunk than its round")

    def _absorb_wave(self, after: CoordinatorState, bodies: list[Bodies]) -> CoordinatorState:
        blobs, n = dict(after.blobs), self.spec.n_parties
        for at, each in enumerate(bodies):
            for kind in (sizes.POINTS, sizes.HOPS):
                for segment in segments_from_bytes(each.get(kind, b"")):
                    name = f"segment/{segment.owner}/{segment.chunk}"
                    blobs[name] = to_bytes(segment_to_proto(segment))
            if sizes.TAGS in each:
                tags = from_bytes(pb.AlignmentTags, each[sizes.TAGS], "a body of tags")
                del blobs[f"segment/{at}/{tags.chunk}"]
                blobs[f"tags/{at}/{tags.chunk}"] = tags.tags
                if self.spec.extends is not None:
                    blobs[f"old/{at}/{tags.chunk}"] = tags.old_rows
        after = replace(after, blobs=blobs)
        if after.round < FIRST_WAVE + self._schedule(after).waves:
            return after
        return self._draw_rows(after, n)

    def _draw_rows(self, state: CoordinatorState, n: int) -> CoordinatorState:
        """Match all tags and draw the order; forget tags, seed, phantoms and the report's noise."""
        schedule = self._schedule(state)

        def whole(kind: str, at: int) -> bytes:
            return b"".join(state.blobs[f"{kind}/{at}/{c}"] for c in range(schedule.n_chunks(at)))

        lists = [np.frombuffer(whole("tags", at), np.uint8).reshape(-1, 16) for at in range(n)]
        matching = match(lists)
        old_rows = None
        if self.spec.extends is not None:
            old_rows = [np.frombuffer(whole("old", at), "<u4").astype(np.uint32) for at in range(n)]
        placed = place(
            matching, self.spec, seed=state.seed, phantoms=state.phantoms, old_rows=old_rows
        )
        counted = pattern_counts(matching, n)
        overlap = Overlap.of(counted, np.array(state.report_noise, np.int64), self.spec)
        return replace(
            state,
            seed=b"",
            phantoms=0,
            report_noise=(),
            n_rows=placed.n_rows,
            kept=placed.kept,
            overlap=overlap.counts,
            blobs={f"rows/{at}": placed.rows[at].astype("<u4").tobytes() for at in range(n)},
        )

    def _absorb_confirmations(
        self, after: CoordinatorState, bodies: list[Bodies]
    ) -> CoordinatorState:
        if not self._schedule(after).confirms(after.round - 1):
            return after
        macs = [
            from_bytes(pb.AlignmentConfirmation, each[sizes.CONFIRM], "a confirmation").macs
            for each in bodies
        ]
        return replace(after, confirmations=tuple(macs), blobs={})


def _kind(visit: Visit) -> str:
    return sizes.HOPS if visit.hop else sizes.POINTS


def _segment_name(visit: Visit) -> str:
    return f"segment/{visit.owner}/{visit.chunk}"


def _mac_for(macs: bytes, sender: int, receiver: int) -> bytes:
    number = receiver if receiver < sender else receiver - 1
    return macs[number * sizes.MAC_BYTES : (number + 1) * sizes.MAC_BYTES]
