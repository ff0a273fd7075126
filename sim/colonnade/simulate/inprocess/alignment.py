"""An alignment in one process: the shipped steps of both sides, without wire or processes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.ledger.receipts import public_bytes
from colonnade.methods.alignment.crypto.exchange import Attestor, Unattested
from colonnade.methods.alignment.normalise import IdRule
from colonnade.methods.alignment.spec import (
    NO_ROW,
    AlignmentPart,
    AlignmentSpec,
    Extension,
    Mode,
    default_chunk,
)
from colonnade.party.methods.alignment.lists import Earlier
from colonnade.party.methods.alignment.party import AlignmentParty
from colonnade.party.methods.alignment.state import PartyState
from colonnade.party.methods.alignment.state import state_from_bytes as party_state_from_bytes
from colonnade.party.methods.alignment.state import state_to_bytes as party_state_to_bytes
from colonnade.privacy.membership import MembershipNoise
from colonnade.privacy.sampling import NoiseSource
from colonnade.server.methods.alignment import Alignment, AlignmentResult
from colonnade.server.methods.alignment_state import (
    CoordinatorState,
    header_to_bytes,
    state_from_bytes,
)

Entropy = Callable[[int], bytes]
# Changes what a party answers, or what it is asked: (round, party, bodies or task).
Tamper = Callable[[int, str, dict[str, bytes]], dict[str, bytes]]
TamperTask = Callable[[int, str, bytes], bytes]


def _as_it_is(_round: int, _party: str, bodies: dict[str, bytes]) -> dict[str, bytes]:
    return bodies


def _task_as_it_is(_round: int, _party: str, task: bytes) -> bytes:
    return task


@dataclass(frozen=True)
class AlignmentMember:
    """A party of a simulated alignment: its signing key, its ids, and earlier rows if any."""

    signer: Ed25519PrivateKey
    ids: Sequence[bytes]
    earlier: Earlier | None = None


def simulated_spec(
    members: Mapping[str, AlignmentMember],
    *,
    salt: bytes,
    mode: Mode = Mode.UNION,
    noise: MembershipNoise | None = None,
    chunk: int | None = None,
    extends: Extension | None = None,
    max_people: int | None = None,
) -> AlignmentSpec:
    """Return the specification of an alignment of ``members``, in their order."""
    most = max_people or max(len(member.ids) for member in members.values())
    return AlignmentSpec(
        salt=salt,
        parts=tuple(
            AlignmentPart(name, public_bytes(member.signer), most)
            for name, member in members.items()
        ),
        mode=mode,
        ids=IdRule(),
        noise=noise or MembershipNoise.within(1.0, 1e-9),
        chunk=chunk or default_chunk(len(members)),
        extends=extends,
    )


@dataclass
class AlignmentRun:
    """A run that can be stepped, stopped and restarted from stored bytes between any two steps."""

    spec: AlignmentSpec
    members: Mapping[str, AlignmentMember]
    noise: NoiseSource
    entropy: Entropy
    tamper: Tamper = _as_it_is
    tamper_task: TamperTask = _task_as_it_is
    attestor: Callable[[str], Attestor] = lambda _party: Unattested()
    uplink: dict[str, dict[str, int]] = field(default_factory=dict)
    downlink: dict[str, int] = field(default_factory=dict)
    parties: dict[str, AlignmentParty] = field(default_factory=dict)
    states: dict[str, PartyState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.steps = Alignment.of(self.spec)
        self.state = self.steps.start(self.noise, self.entropy)
        for name in self.members:
            self.parties[name] = self._party(name)
            self.states[name] = self.parties[name].start(self.noise, self.entropy)
            self.uplink[name], self.downlink[name] = {}, 0

    def _party(self, name: str) -> AlignmentParty:
        member = self.members[name]
        return AlignmentParty(
            self.spec, name, member.signer, member.ids, member.earlier, attestor=self.attestor(name)
        )

    def restart_party(self, name: str) -> None:
        """Kill a party and start it again from its stored bytes."""
        self.parties[name] = self._party(name)
        self.states[name] = party_state_from_bytes(party_state_to_bytes(self.states[name]))

    def restart_coordinator(self) -> None:
        """Kill the coordinator and start it again from its stored bytes."""
        self.steps = Alignment.of(self.spec)
        self.state = state_from_bytes(header_to_bytes(self.state), self.state.blobs)

    def ask(self, name: str, task: bytes) -> dict[str, bytes]:
        """Have a party answer a task, and keep its state."""
        self.states[name], bodies = self.parties[name].answer(self.states[name], task)
        return bodies

    def step(self) -> CoordinatorState:
        """Run one round and count its bytes."""
        answers = {}
        for name, task in self.steps.tasks(self.state).items():
            asked = self.tamper_task(self.state.round, name, task)
            bodies = self.tamper(self.state.round, name, self.ask(name, asked))
            self.steps.check(self.state, name, bodies)
            self.downlink[name] += len(task)
            for kind, body in bodies.items():
                self.uplink[name][kind] = self.uplink[name].get(kind, 0) + len(body)
            answers[name] = bodies
        self.state = self.steps.absorb(self.state, answers)
        return self.state

    def finish(self) -> AlignmentResult:
        """Run all rounds that are left."""
        while not self.steps.finished(self.state):
            self.step()
        return self.steps.result(self.state)

    def rows(self, name: str) -> dict[bytes, int]:
        """Return the row of every id of a party that has one."""
        rows = self.parties[name].rows(self.states[name])
        pairs = zip(self.members[name].ids, rows.tolist(), strict=True)
        return {id_: row for id_, row in pairs if row != NO_ROW}
