"""The coordinator's side of a prediction: it relays keys and sealed parts, and can open none.

Its state is the parts of one chunk on their way to the receiver; they are forgotten when they have
arrived.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from colonnade.core.errors import BadInput, BadMessage
from colonnade.data.model import LinearModel
from colonnade.methods.job import Job
from colonnade.methods.messages import read
from colonnade.methods.prediction.claims import PROMISE, learned
from colonnade.methods.prediction.method import PREDICTION
from colonnade.methods.prediction.spec import KEY, PART, PredictionSpec
from colonnade.server.methods.base import Bodies, Findings
from colonnade.server.store.base import IterateRow, UplinkRow
from colonnade.v1 import prediction_pb2 as pb


@dataclass(frozen=True, slots=True)
class RelayState:
    """The state before round ``round``."""

    round: int
    keys: tuple[bytes, ...] = ()
    parts: tuple[bytes, ...] = ()  # in the order of the senders


@dataclass(frozen=True, slots=True)
class PredictionJob:
    """The steps of one prediction."""

    spec: PredictionSpec

    @classmethod
    def of(cls, job: Job, job_id: str, spec: PredictionSpec) -> "PredictionJob":
        """Return the steps of a job."""
        del job, job_id
        return cls(spec)

    @property
    def account(self) -> str:
        """The ledger account that counts."""
        return PREDICTION.account

    def start(self) -> RelayState:
        """Return the state before the keys are announced."""
        return RelayState(0)

    def round_of(self, state: RelayState) -> int:
        """Return the round that comes next."""
        return state.round

    def rounds(self, state: RelayState) -> int:
        """Return the rounds after the first."""
        del state
        return self.spec.rounds

    def finished(self, state: RelayState) -> bool:
        """Return whether the receiver has all parts."""
        return state.round > self.spec.rounds

    def tasks(self, state: RelayState) -> Mapping[str, bytes]:
        """Return the round's tasks by party; the same bytes whenever it is asked."""
        return {
            part.party: self._task(state, part.party)
            for part in self.spec.parts
            if self.spec.answer_bytes(part.party, state.round)
        }

    def check(self, state: RelayState, party: str, bodies: Bodies) -> None:
        """Refuse an answer that does not have the kinds and sizes of the round."""
        expected = self.spec.answer_bytes(party, state.round)
        if {kind: len(body) for kind, body in bodies.items()} != dict(expected):
            raise BadMessage(f"the answer of {party} has other kinds or sizes than its round")

    def absorb(self, state: RelayState, answers: Mapping[str, Bodies]) -> RelayState:
        """Return the state after a round whose answers were checked."""
        spec = self.spec
        if state.round == 0:
            return RelayState(1, tuple(answers[part.party][KEY] for part in spec.parts))
        senders = [spec.parts[place].party for place in spec.senders]
        parts = tuple(answers[name][PART] for name in senders if name in answers)
        return RelayState(state.round + 1, state.keys, parts)

    def encode(self, state: RelayState) -> bytes:
        """Return the bytes of a state."""
        message = pb.PredictionState(round=state.round, keys=state.keys, parts=state.parts)
        return message.SerializeToString(deterministic=True)

    def encode_change(self, before: RelayState, after: RelayState) -> bytes:
        """Return the bytes of a state: whole, whatever came before."""
        del before
        return self.encode(after)

    def decode(self, body: bytes, *, since: RelayState | None = None) -> RelayState:
        """Return the state that the bytes stand for."""
        del since
        message = read(pb.PredictionState, body, "a state of the prediction")
        return RelayState(message.round, tuple(message.keys), tuple(message.parts))

    def cost(self, party: str, kind: str, round_: int) -> int:
        """Return 0: nothing has a price that has no guarantee."""
        del party, kind, round_
        return 0

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the greatest size of one body."""
        return self.spec.body_bytes(party, kind)

    def predicted(self, row: UplinkRow) -> int:
        """Return the exact size of the body that ``row`` counts."""
        return self.spec.answer_bytes(row.party, row.round)[row.kind]

    def model(self, state: RelayState) -> LinearModel:
        """Refuse: the model is another job's."""
        del state
        raise BadInput("a prediction applies the model of another job and ends in none")

    def features_used(self, state: RelayState) -> Mapping[str, int]:
        """Return nothing: there are no features."""
        del state
        return {}

    def parameters(self) -> Mapping[str, Any]:
        """Return the public numbers of the run."""
        return {"rows": self.spec.count, "chunk": self.spec.chunk, "parties": len(self.spec.parts)}

    def _task(self, state: RelayState, party: str) -> bytes:
        message = pb.PredictionTask(round=state.round, keys=state.keys)
        if party == self.spec.receiver:
            message.parts.extend(state.parts)
        return message.SerializeToString(deterministic=True)


def prediction_findings(
    job: PredictionJob, states: Iterable[tuple[IterateRow, RelayState]], *, is_open: bool
) -> Findings:
    """Return what a report tells of a prediction: who learned what, and of how many rows."""
    del is_open
    _, state = deque(states, maxlen=1).pop()
    spec = job.spec
    section = {
        "model": spec.model.hex(),
        "receiver": spec.receiver,
        "purpose": spec.purpose,
        "parties": [part.party for part in spec.parts],
        "middle": list(spec.middle),
        "rows": spec.count,
        "delivered": job.finished(state),
        "promise": PROMISE,
        "learned": [
            {"who": who, "what": what}
            for who, what in learned(spec.receiver, len(spec.parts), spec.middle)
        ],
    }
    return Findings(section=section, statement=PROMISE, body_bytes=job.predicted)
