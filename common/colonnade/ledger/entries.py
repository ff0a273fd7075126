"""The kinds of ledger entry, and the text that the hash chain covers.

An entry is one JSON object on one line: sorted keys, no spaces, ASCII. The chain is
``hash[i] = SHA-256(hash[i-1] + line[i])``, from ``hash[0] = SHA-256("colonnade ledger v1")``, so
anyone with the lines and a SHA-256 program can recompute it.

What happens to many accounts of a host at once is one entry, not one for each: it lists them.
"""

import functools
import hashlib
import json
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, get_args

from colonnade.ledger.job_entries import (
    AdmittedAfter,
    ApproversSet,
    Decided,
    Declined,
    PolicyNoted,
    Proposed,
    Settled,
)
from colonnade.ledger.people.entries import Joined, PersonPaid

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class _Names(NamedTuple):
    job: str
    round: int
    kind: str
    account: str


class ReleaseKey(_Names):
    """Name one release at one party: asked twice, it is the same release.

    ``account`` distinguishes the populations that one ledger may serve (the clients of a host);
    a party with one table uses the default account. A tuple, for it is looked up all the time.
    """

    __slots__ = ()

    def __new__(cls, job: str, round: int, kind: str, account: str = "") -> Self:  # noqa: A002
        """Check the parts: a key that could not be written must not be looked up either."""
        if type(round) is not int or not 0 <= round < 2**32:
            raise ValueError("a round is an integer from 0")
        if type(job) is not str or type(kind) is not str or type(account) is not str:
            raise ValueError("job, kind and account are text")
        return super().__new__(cls, job, round, kind, account)

    def digest(self) -> bytes:
        """Return the SHA-256 of the key's canonical text."""
        return _digest_key(self)


@functools.lru_cache(maxsize=64)  # a release asks three times
def _digest_key(key: ReleaseKey) -> bytes:
    text = canonical({"job": key.job, "round": key.round, "kind": key.kind, "account": key.account})
    return hashlib.sha256(text.encode()).digest()


@dataclass(frozen=True, slots=True)
class Opened:
    """First entry: whose ledger this is and which key signs for it."""

    type: ClassVar[str] = "opened"
    ledger_id: str
    party: str
    public_key: str
    approver_keys: list[str]  # of the people who decide on jobs and sign every raise of a cap
    simulation: bool
    founding_caps: int  # how many caps, set at creation, follow this entry
    continues: list[str]  # ledgers that this one replaced after recoveries, newest first
    accounted: list[int]  # of each, the last place until which its spending was taken over

    @property
    def predecessors(self) -> dict[str, int]:
        """The ledgers that this one continues, and until which place it accounts for them."""
        return dict(zip(self.continues, self.accounted, strict=True))


@dataclass(frozen=True, slots=True)
class CapSet:
    """The most that an account may ever spend; the empty account is the default for all.

    With a ``scope`` it is the most that the jobs of one operator, for one purpose or of one month
    may cost any one account; there ``account`` names the operator, purpose or month, and the empty
    name is the default for all of them.
    """

    type: ClassVar[str] = "cap"
    scope: str
    account: str
    units: int
    reason: str
    signature: str
    approver_signature: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """A job was admitted and its greatest possible spend set aside."""

    type: ClassVar[str] = "admitted"
    job: str
    account: str
    units: int
    month: str  # on whose cap it counts, such as 2026-11


@dataclass(frozen=True, slots=True)
class AdmittedTogether:
    """A job was admitted and its greatest possible spend set aside, of each of many accounts."""

    type: ClassVar[str] = "admitted-together"
    job: str
    accounts: list[str]
    units: int  # of each
    month: str


@dataclass(frozen=True, slots=True)
class Charged:
    """A release was paid for; nothing of it has been computed yet."""

    type: ClassVar[str] = "charged"
    job: str
    round: int
    kind: str
    account: str
    units: int
    mechanism: dict[str, Any]
    request_sha256: str


@dataclass(frozen=True, slots=True)
class ChargedTogether:
    """Releases of one kind and round were paid for, each by an account of its own."""

    type: ClassVar[str] = "charged-together"
    job: str
    round: int
    kind: str
    accounts: list[str]
    units: int  # by each
    mechanism: dict[str, Any]
    requests_sha256: list[str]


@dataclass(frozen=True, slots=True)
class Stored:
    """The bytes of a paid release were stored; from here on they may be sent."""

    type: ClassVar[str] = "stored"
    job: str
    round: int
    kind: str
    account: str
    body_sha256: str
    body_bytes: int
    spent: int  # by the account, when this was stored: what the receipt states


@dataclass(frozen=True, slots=True)
class StoredTogether:
    """The bytes of paid releases of one size were stored, one after the other."""

    type: ClassVar[str] = "stored-together"
    job: str
    round: int
    kind: str
    accounts: list[str]
    bodies_sha256: list[str]
    body_bytes: int  # of each
    spent: list[int]  # by each account, when this was stored


@dataclass(frozen=True, slots=True)
class Purged:
    """The stored bytes were deleted; the release is never answered again."""

    type: ClassVar[str] = "purged"
    job: str
    round: int
    kind: str
    account: str

    @property
    def key(self) -> ReleaseKey:
        """The release this belongs to."""
        return ReleaseKey(self.job, self.round, self.kind, self.account)


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Releases were paid for and could not be made; they are never tried again."""

    type: ClassVar[str] = "abandoned"
    job: str
    round: int
    kind: str
    accounts: list[str]

    @property
    def keys(self) -> list[ReleaseKey]:
        """The releases this belongs to."""
        return [ReleaseKey(self.job, self.round, self.kind, each) for each in self.accounts]


@dataclass(frozen=True, slots=True)
class Closed:
    """A job ended: what it had set aside is free again and it is never charged again."""

    type: ClassVar[str] = "closed"
    job: str


@dataclass(frozen=True, slots=True)
class Adopted:
    """Spending known from elsewhere was taken over after a recovery.

    The account ``"*"`` stands for every account that has no entry of its own.
    """

    type: ClassVar[str] = "adopted"
    scope: str  # empty, or that of a cap; then ``account`` is as there
    account: str
    units: int
    reason: str


@dataclass(frozen=True, slots=True)
class Bound:
    """The table that the ledger pays for from here on.

    Privacy: ``table`` is a hash under the ledger's key, so that nobody who reads an export can try
    out tables; ``dataset`` is random.
    """

    type: ClassVar[str] = "bound"
    dataset: str  # the public name of the ingest; empty for a file that was read for one fit
    table: str
    client_ids: str  # the rule by which clients' ids were written; empty for an undivided table
    other_ledger: str  # the ledger that the table was used with before, or empty
    forced: bool  # bound although clients were mostly new, or their rule another one
    reason: str


Entry: TypeAlias = (
    Opened
    | ApproversSet
    | CapSet
    | PolicyNoted
    | Proposed
    | Declined
    | Decided
    | Admitted
    | AdmittedTogether
    | AdmittedAfter
    | Charged
    | ChargedTogether
    | Stored
    | StoredTogether
    | Purged
    | Abandoned
    | Closed
    | Settled
    | Adopted
    | Bound
    | Joined
    | PersonPaid
)
KINDS: Mapping[str, type[Entry]] = types.MappingProxyType(
    {kind.type: kind for kind in get_args(Entry)}
)


def canonical(value: Mapping[str, Any]) -> str:
    """Return the one text form of a JSON object."""
    return _ENCODER.encode(value)
