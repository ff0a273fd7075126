"""An alignment as a job of the engine: its steps, stored as changes, and its report."""

import itertools
import secrets
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel
from colonnade.methods.alignment import sizes
from colonnade.methods.alignment.claims import PROMISE, learned
from colonnade.methods.alignment.codec import from_bytes, to_bytes
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.method import ALIGNMENT
from colonnade.methods.alignment.schedule import RoundSchedule
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.methods.job import Job
from colonnade.privacy.accounting import format_upper_bound
from colonnade.privacy.sampling import OsNoise
from colonnade.server.methods.alignment import Alignment, Bodies
from colonnade.server.methods.alignment_state import (
    CoordinatorState,
    changes,
    header_to_bytes,
    state_from_bytes,
)
from colonnade.server.methods.base import Findings
from colonnade.server.store.base import IterateRow, UplinkRow
from colonnade.v1 import alignment_pb2 as pb


@dataclass(frozen=True, slots=True)
class AlignmentJob:
    """The steps of one alignment."""

    steps: Alignment
    limits: AlignmentJobSpec

    @classmethod
    def of(cls, job: Job, job_id: str, spec: AlignmentJobSpec) -> "AlignmentJob":
        """Return the steps of a job."""
        del job, job_id
        return cls(Alignment.of(spec.alignment), spec)

    @property
    def spec(self) -> AlignmentSpec:
        """The specification."""
        return self.steps.spec

    @property
    def account(self) -> str:
        """The ledger account that pays."""
        return ALIGNMENT.account

    def start(self) -> CoordinatorState:
        """Draw the order of the rows, the phantoms and the noise of the report."""
        return self.steps.start(OsNoise(), secrets.token_bytes)

    def round_of(self, state: CoordinatorState) -> int:
        """Return the round that comes next."""
        return state.round

    def rounds(self, state: CoordinatorState) -> int:
        """Return the rounds after the first: at most so many, until the lists' lengths are told."""
        if not state.lengths:
            return self.limits.rounds
        return RoundSchedule(self.spec, state.lengths).rounds - 1

    def finished(self, state: CoordinatorState) -> bool:
        """Return whether all rounds are done."""
        return self.steps.finished(state)

    def tasks(self, state: CoordinatorState) -> Mapping[str, bytes]:
        """Return the round's tasks by party."""
        return self.steps.tasks(state)

    def check(self, state: CoordinatorState, party: str, bodies: Bodies) -> None:
        """Refuse an answer that is not the round's."""
        self.steps.check(state, party, bodies)

    def absorb(self, state: CoordinatorState, answers: Mapping[str, Bodies]) -> CoordinatorState:
        """Return the state after the round."""
        return self.steps.absorb(state, answers)

    def encode(self, state: CoordinatorState) -> bytes:
        """Return the bytes of a whole state."""
        return _encode(state, state.blobs, ())

    def encode_change(self, before: CoordinatorState, after: CoordinatorState) -> bytes:
        """Return the bytes of a state as a change of the one before."""
        changed = changes(before, after)
        return _encode(after, changed.put, sorted(changed.drop))

    def decode(self, body: bytes, *, since: CoordinatorState | None = None) -> CoordinatorState:
        """Return the state that the bytes stand for."""
        message = from_bytes(pb.AlignmentChange, body, "a state of the alignment")
        blobs = {} if since is None else dict(since.blobs)
        for name in message.drop:
            blobs.pop(name, None)
        blobs |= {blob.name: blob.body for blob in message.put}
        return state_from_bytes(to_bytes(message.header), blobs)

    def cost(self, party: str, kind: str, round_: int) -> int:
        """Return the price of one body: the dummies are paid for before the keys are sent."""
        del party, round_
        return self.spec.noise.cost if kind == sizes.KEYS else 0

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the greatest size of one body."""
        return self.limits.body_bytes(party, kind)

    def predicted(self, state: CoordinatorState, row: UplinkRow) -> int:
        """Return the exact size of the body that ``row`` counts."""
        place = self.spec.place(row.party)
        return sizes.answer_bytes(self.spec, place, row.round, state.lengths or None)[row.kind]

    def model(self, state: CoordinatorState) -> LinearModel:
        """Refuse: an alignment has none."""
        del state
        raise BadInput("an alignment ends in an order of rows, not in a model")

    def features_used(self, state: CoordinatorState) -> Mapping[str, int]:
        """Return nothing: there are no features."""
        del state
        return {}

    def parameters(self) -> Mapping[str, Any]:
        """Return the public numbers of the run."""
        spec = self.spec
        return {
            "alignment": self.steps.run.hex(),
            "mode": spec.mode.value,
            "chunk": spec.chunk,
            "dummy_scale": spec.noise.scale,
            "dummy_shift": spec.noise.shift,
            "canaries": spec.n_canaries,
            "max_people": {part.party: part.max_people for part in spec.parts},
        }


def _encode(state: CoordinatorState, put: Mapping[str, bytes], drop: Iterable[str]) -> bytes:
    message = pb.AlignmentChange(drop=drop)
    message.header.ParseFromString(header_to_bytes(state))
    for name, body in put.items():
        message.put.add(name=name, body=body)
    return to_bytes(message)


def alignment_findings(
    job: AlignmentJob, states: Iterable[tuple[IterateRow, CoordinatorState]], *, is_open: bool
) -> Findings:
    """Return the overlap that a report tells, from counts with noise, and who learns what."""
    del is_open
    _, state = deque(states, maxlen=1).pop()
    section: dict[str, Any] = {
        "name": job.steps.run.hex(),
        "mode": job.spec.mode.value,
        "parties": [part.party for part in job.spec.parts],
        "promise": PROMISE,
        "learned": [
            {"who": who, "what": what}
            for who, what in learned(
                [job.spec.mode], job.spec.noise, extends=job.spec.extends is not None
            )
        ],
        "membership": {
            "epsilon": float(job.spec.noise.epsilon),
            "delta": job.spec.noise.delta,
            "account": job.account,
        },
        "n_rows": None,
        "kept": None,
        "overlap": [],
    }
    if job.finished(state):
        section |= {"n_rows": state.n_rows, "kept": state.kept, "overlap": _overlap(job, state)}
    epsilon = format_upper_bound(float(job.spec.noise.epsilon))
    amount = f"epsilon {epsilon}, delta {job.spec.noise.delta:.3g}"
    statement = f"Membership, once a run, at each party: {amount}. {PROMISE}"
    return Findings(
        section=section, statement=statement, body_bytes=lambda row: job.predicted(state, row)
    )


def _overlap(job: AlignmentJob, state: CoordinatorState) -> list[dict[str, Any]]:
    """Return estimated people at each party, at each pair, and at all, and how far that errs.

    The error is a standard deviation. That of people at some parties is of all patterns with these.
    """
    overlap, names = job.steps.result(state).overlap, [part.party for part in job.spec.parts]
    groups = [*((at,) for at in range(len(names))), *itertools.combinations(range(len(names)), 2)]
    if len(names) > 2:
        groups.append(tuple(range(len(names))))
    return [
        {
            "parties": [names[at] for at in group],
            "people": overlap.at_all(*group),
            "error": round(job.spec.noise.deviation(1 << len(names) - len(group)), 1),
        }
        for group in groups
    ]
