"""What must hold after every step, looked at from outside of the processes.

The watch sits on the wire and reads disks as a power cut at that moment would leave them. It takes
nothing from a running process: not its memory, not its word.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from colonnade.bench.faults.disk import Disk, Image
from colonnade.core.errors import ColonnadeError
from colonnade.ledger.state import LedgerState
from colonnade.ledger.storage.loading import load_state
from colonnade.privacy.disclosure import Disclosure
from colonnade.privacy.membership import Covered
from colonnade.privacy.ring_noise import SealedCiphertext
from colonnade.v1 import federation_pb2 as pb

# Covered by what the same job paid for, disclosed under a grant, or unreadable without a key.
FREE = (Covered, Disclosure, SealedCiphertext)


class Sent(NamedTuple):
    """Names bytes that left: one body, ever."""

    job: str
    round: int
    kind: str
    client: int = -1


@dataclass
class Watch:
    """The wire and the disk of one party."""

    party: str
    disk: Disk
    cap: int
    violations: list[str]
    bodies: dict[Sent, bytes] = field(default_factory=dict)
    tasks: dict[tuple[str, int], bytes] = field(default_factory=dict)
    spent: int = 0
    _left: set[tuple[str, int, str]] = field(default_factory=set)

    def sent(self, message: pb.AttachRequest) -> None:
        """See what leaves the party: charged and stored by now, and the same as before."""
        if not self.disk.alive:
            self._violated("a dead process spoke")
        new = {}
        for name, body in _bodies(message.submission):
            if name not in self.bodies:
                new[name] = self.bodies[name] = body
                self._left.add(name[:3])
            elif self.bodies[name] != body:
                self._violated(f"other bytes under a used key: {name.kind} of round {name.round}")
        if new:
            self._check_durable(new)

    def asked(self, message: pb.AttachResponse) -> None:
        """See what the party is asked: one question for a round, ever."""
        if message.HasField("task"):
            task = message.task
            if self.tasks.setdefault((task.job_id, task.round), task.body) != task.body:
                self._violated(f"another question under a used key: round {task.round}")

    def left(self, what: tuple[str, int, str]) -> bool:
        """Return whether bytes of a job's round and kind have left."""
        return what in self._left

    def check_disk(self) -> LedgerState | None:
        """Check the disk, and that everything that ever left is on it; return its ledger."""
        return self._check_durable(self.bodies)

    def _check_durable(self, bodies: Mapping[Sent, bytes]) -> LedgerState | None:
        try:
            image = self.disk.image()
            state = load_state(image)
        except ColonnadeError as error:
            self._violated(f"the ledger would not open after a power cut: {error.code}")
            return None
        self._check_budget(state)
        stored = _stored(state, image)
        # What the coordinator has taken may be purged; what leaves now may not be.
        gone = {key[:3] for key in state.purged} if bodies is self.bodies else set()
        for name, body in bodies.items():
            if body not in stored[name[:3]] and name[:3] not in gone:
                self._violated(f"sent and not charged or stored: {name.kind} round {name.round}")
        return state

    def _check_budget(self, state: LedgerState) -> None:
        sums = defaultdict[str, int](int)
        for key, charge in state.charges.items():
            sums[key.account] += charge.units
            if charge.units <= 0 and not isinstance(charge.mechanism, FREE):
                self._violated("a release cost nothing")
        if max(sums.values(), default=0) > self.cap:
            self._violated("more was spent than the cap")
        if any(sums[account] + units > self.cap for account, units in state.reserved.items()):
            self._violated("more was spent and set aside than the cap")
        total = sum(sums.values())
        if total < self.spent:
            self._violated("budget came back")
        self.spent = max(self.spent, total)

    def _violated(self, what: str) -> None:
        self.violations.append(f"{self.party}: {what}")


def _bodies(submission: pb.Submission) -> Iterator[tuple[Sent, bytes]]:
    for release in submission.releases:
        yield Sent(release.key.job_id, release.key.round, release.key.kind), release.body
    said = submission.clients
    for client, round_, body in zip(said.clients, said.rounds, said.bodies, strict=True):
        yield Sent(submission.job_id, round_, said.kind, client), body


def _stored(state: LedgerState, image: Image) -> dict[tuple[str, int, str], set[bytes]]:
    """Return the bytes of all releases that are charged and stored."""
    found = defaultdict[tuple[str, int, str], set[bytes]](set)
    for key, kept in state.stored.items():
        row = image.body(kept.seq)
        if key in state.charges and row is not None and (body := kept.of(row)) is not None:
            found[key[:3]].add(body)
    return found
