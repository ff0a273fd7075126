"""Federated ADMM as a job's method: which party holds how many clients, and the specification.

All parties bring the same columns under the same bounds, label included. A party's clients are
numbered from 0 in its own order, and all clients of the job in the order of the parties.
"""

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from colonnade.linear.losses import LOGISTIC
from colonnade.masking.schedule import KEY_BYTES, Peer, Protocol, Run
from colonnade.methods.admm.releases import DISPLACEMENT, INTERCEPT
from colonnade.methods.admm.secure.exchanges import FREE_KINDS, free_bytes
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.problem import Labels, Loss

# What the clients of one party answer in a round must fit one message.
MAX_ANSWER_BYTES = 3 << 20


@dataclass(frozen=True, slots=True)
class ClientPart:
    """A party's place in the job."""

    party: str
    features: tuple[str, ...]
    clients: int

    @property
    def holds_label(self) -> bool:
        """Every client has labels for its rows."""
        return True


@dataclass(frozen=True, slots=True)
class AdmmJobSpec:
    """A federated ADMM job.

    Parameters
    ----------
    round_timeout_s
        Seconds after which a round closes with those who answered, if they are enough.
    keys
        Secure sums: the parties' public ledger keys, which each compares with those it pinned.
    """

    kind: ClassVar[str] = "admm"
    labels: ClassVar[Labels] = Labels.SHARED  # every client holds its own
    sketch_dim: ClassVar[int] = 0  # nothing is sketched
    parts: tuple[ClientPart, ...]
    spec: AdmmSpec
    round_timeout_s: int
    keys: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        if not self.parts or any(part.clients < 1 for part in self.parts):
            raise ValueError("every party of the job needs at least one client")
        if len({part.party for part in self.parts}) != len(self.parts):
            raise ValueError("a job needs parties with different names")
        if sum(part.clients for part in self.parts) != self.spec.n_clients:
            raise ValueError("the parties' clients are not the job's")
        if any(part.features != self.parts[0].features for part in self.parts):
            raise ValueError("all parties need the same features in the same order")
        if self.spec.maskers not in (0, len(self.parts)):
            raise ValueError("in a secure sum every party masks")
        if len(self.keys) != self.spec.maskers or any(len(key) != KEY_BYTES for key in self.keys):
            raise ValueError("a secure sum names the ledger key of every party")
        if len(set(self.keys)) != len(self.keys):  # who holds it would mask, and collude, for two
            raise ValueError("two parties of a secure sum have one ledger key")
        if len(self.parts[0].features) != self.spec.n_features:
            raise ValueError("the parties' features are not the job's")
        if not 1 <= self.round_timeout_s <= 10**6:
            raise ValueError("a round's timeout must lie between 1 and 1000000 seconds")
        if any(
            self.asked(part.party) * self.spec.body_bytes > MAX_ANSWER_BYTES for part in self.parts
        ):
            raise ValueError(f"a party's answers in a round have over {MAX_ANSWER_BYTES} bytes")

    @property
    def rounds(self) -> int:
        """Rounds of the job."""
        return self.spec.rounds

    @property
    def population(self) -> int:
        """Clients, each with all of its rows: the unit of privacy."""
        return self.spec.n_clients

    @property
    def loss(self) -> Loss:
        """What is minimised."""
        return Loss.LOGISTIC if self.spec.loss == LOGISTIC else Loss.SQUARED

    def part(self, party: str) -> ClientPart:
        """Return the place of ``party``."""
        return next(part for part in self.parts if part.party == party)

    def first(self, party: str) -> int:
        """Return the number, among all clients, of the party's first."""
        before = itertools.takewhile(lambda part: part.party != party, self.parts)
        return sum(part.clients for part in before)

    def max_units(self, party: str) -> int:
        """Return the most that the job can cost one client, whichever party holds it."""
        self.part(party)
        return self.spec.max_units

    def asked(self, party: str) -> int:
        """Return the most clients of ``party`` that one round can ask."""
        most = max(self.spec.max_sampled, self.spec.cohort(self.spec.rounds).sampled)
        return min(self.part(party).clients, most)

    def task_entries(self, party: str) -> int:
        """Return the most numbers that a task for ``party`` can have."""
        return self.asked(party) * self.spec.point_size(self.spec.rounds)

    def max_releases(self, party: str) -> Mapping[str, int]:
        """Return how many releases of each kind ``party`` can be asked for.

        A round that is short of answers draws others, so that its own size is no limit.
        """
        clients = self.part(party).clients
        counts = {DISPLACEMENT: clients * self.spec.max_participations}
        if self.spec.intercept_rounds:
            counts[INTERCEPT] = clients
        if self.spec.maskers:
            counts |= dict.fromkeys(FREE_KINDS.values(), self.max_attempts)
        return counts

    def run(self, job: str) -> Run:
        """Return what the secure sums of a job are about, as every party names it."""
        peers = tuple(
            Peer(part.party, key) for part, key in zip(self.parts, self.keys, strict=True)
        )
        nothing = hashlib.sha256(b"").digest()
        return Run(Protocol.COHORT, job.encode(), nothing, nothing, peers, 1)

    @property
    def max_attempts(self) -> int:
        """The most attempts at rounds of secure sums; those that fail are tried anew."""
        return 2 * self.spec.rounds + 10

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""
        self.part(party)
        if (rules := self.spec.cohort_rules) is not None and kind in FREE_KINDS.values():
            return free_bytes(kind, rules)
        return self.spec.release_of(kind).code.n_bytes
