"""A job as both sides see it: who brings which columns, within which public bounds, and a method.

Privacy: bounds are public numbers. Values are clipped to them at the party, whatever they are, so
a job's author cannot raise the sensitivity by choosing them.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from colonnade.core.fixedpoint import Bounds
from colonnade.methods.admm.method import AdmmMethod, ClientPart
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec, Labels
from colonnade.methods.moments.spec import MomentsSpec, Part
from colonnade.privacy.accounting import MAX_UNITS, delta_for

MAX_PARTIES = 256
MAX_MEMBER_NAME = 64
MAX_FEATURES = 2**20
MAX_ROWS = 10**9
MAX_ROUNDS = 10**6
# A task has up to 9 bytes for each of its numbers; it must fit a message of 8 MiB, and so must the
# two releases of a round.
MAX_TASK_ENTRIES = 900_000
MAX_RELEASE_BYTES = 3 << 20

Vertical = FrankWolfeSpec | MomentsSpec  # over columns; the other over clients' rows
Method = Vertical | AdmmMethod
KINDS = tuple(method.kind for method in (FrankWolfeSpec, MomentsSpec, AdmmMethod))


@dataclass(frozen=True, slots=True)
class Member:
    """One party's place in a job."""

    party: str
    dataset: str  # version of its table
    features: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    fills: tuple[float, ...]  # stand for missing values, as declared; clipped to the bounds
    holds_label: bool
    clients: int = 0  # whose rows it holds, in a job over clients

    def __post_init__(self) -> None:
        for name in (self.party, self.dataset):
            if not 1 <= len(name) <= MAX_MEMBER_NAME or not name.isprintable():
                raise ValueError(
                    f"parties and versions have 1 to {MAX_MEMBER_NAME} printable characters"
                )
        if len(self.features) != len(self.bounds) or len(set(self.features)) != len(self.features):
            raise ValueError("a party's features need different names and bounds each")
        if len(self.fills) != len(self.features) or not all(map(math.isfinite, self.fills)):
            raise ValueError("a party's features need a finite fill each")


@dataclass(frozen=True, slots=True)
class Job:
    """Everything about a job that is fixed before it starts."""

    name: str
    salt: bytes
    delta: float
    party_timeout_s: int
    members: tuple[Member, ...]
    label: str
    label_bounds: Bounds
    method: Method

    def __post_init__(self) -> None:
        if len(self.salt) != 16:
            raise ValueError("the salt must have 16 bytes")
        if not 1 <= self.party_timeout_s <= 10**7:
            raise ValueError("the parties' timeout must lie between 1 and 10000000 seconds")
        if not self.name or len(self.name) > 200 or not self.name.isprintable():
            raise ValueError("a job's name has 1 to 200 printable characters")
        if not 1 <= len(self.members) <= MAX_PARTIES or not 1 <= self.n_rows <= MAX_ROWS:
            raise ValueError("the job has too many or no parties or rows")
        delta_for(self.delta, self.n_rows)  # one that protects nobody is refused
        if sum(len(member.features) for member in self.members) > MAX_FEATURES:
            raise ValueError("the job has too many features")
        parts: Sequence[Block | Part | ClientPart] = self.method.parts
        for member, part in zip(self.members, parts, strict=True):
            if (member.party, member.features) != (part.party, part.features):
                raise ValueError("members and the method's parts differ")
            if member.holds_label != part.holds_label:
                raise ValueError("members and the method's parts differ about the label")
        if isinstance(self.method, AdmmMethod):
            self._check_clients(self.method)
        elif any(member.clients for member in self.members):
            raise ValueError("only a job over clients has clients")
        if not 1 <= self.rounds <= MAX_ROUNDS:
            raise ValueError(f"a job has 1 to {MAX_ROUNDS} rounds")
        for member in self.members:
            self._check_sizes(member)

    def _check_clients(self, method: AdmmMethod) -> None:
        """Refuse clients whose columns mean different things."""
        for member in self.members:
            if member.clients != method.part(member.party).clients:
                raise ValueError("members and the method's parts differ about the clients")
            if member.bounds != self.members[0].bounds:
                raise ValueError("all parties of a job over clients need the same bounds")
            if member.fills != self.members[0].fills:
                raise ValueError("all parties of a job over clients need the same fills")

    def _check_sizes(self, member: Member) -> None:
        """Refuse what no ledger could pay or no message carry, before anything is asked."""
        if self.max_units(member.party) > MAX_UNITS:
            raise ValueError("the job costs more than any ledger can hold")
        if self.method.task_entries(member.party) > MAX_TASK_ENTRIES:
            raise ValueError("the sketch or a party's features are too large for a message")
        for kind, count in self.method.max_releases(member.party).items():
            if count and self.method.body_bytes(member.party, kind) > MAX_RELEASE_BYTES:
                raise ValueError(f"a {kind} would have more than {MAX_RELEASE_BYTES} bytes")

    @property
    def n_rows(self) -> int:
        """Rows that every party has; in a job over clients, all clients."""
        return self.method.n_rows

    @property
    def kind(self) -> str:
        """The method's name."""
        return self.method.kind

    @property
    def rounds(self) -> int:
        """Rounds after the first."""
        return self.method.rounds

    def member(self, party: str) -> Member:
        """Return the place of ``party``; `ValueError` if it has none."""
        for member in self.members:
            if member.party == party:
                return member
        raise ValueError("the party is not in the job")

    def max_units(self, party: str) -> int:
        """Return the most that the job can ever cost ``party``."""
        return self.method.max_units(party)

    def label_parties(self) -> tuple[str, ...]:
        """Return the parties whose releases depend on the label."""
        return tuple(member.party for member in self.members if member.holds_label)

    @property
    def labels_shared(self) -> bool:
        """Whether every party holds the label."""
        return self.method.labels is Labels.SHARED


def job_id(spec: bytes) -> str:
    """Return the name of the job that these bytes specify."""
    return hashlib.sha256(spec).hexdigest()
