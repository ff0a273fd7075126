"""The kinds of ledger entry, and the text that the hash chain covers.

An entry is one JSON object on one line: sorted keys, no spaces, ASCII. The chain is
``hash[i] = SHA-256(hash[i-1] + line[i])``, from ``hash[0] = SHA-256("colonnade ledger v1")``, so
anyone with the lines and a SHA-256 program can recompute it.

What happens to many accounts of a host at once is one entry, not one for each: it lists them.
"""

import functools
import hashlib
import json
import math
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, get_args, get_origin, get_type_hints

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
GENESIS = hashlib.sha256(b"colonnade ledger v1").digest()
LATEST = 253_402_300_799  # the last second of the year 9999: calendars end there


class _Names(NamedTuple):
    job: str
    round: int
    kind: str
    account: str


class ReleaseKey(_Names):
    """Name one release at one party: asked twice, it is the same release.

    ``account`` tells apart the people-sets that one ledger may serve (the clients of a host);
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
    approver_key: str  # empty, or the key that must also sign every raise of a cap
    simulation: bool
    founding_caps: int  # how many caps, set at the founding, follow this entry
    continues: list[str]  # ledgers that this one replaced after recoveries, newest first
    accounted: list[int]  # of each, the last place until which its spending was taken over

    @property
    def predecessors(self) -> dict[str, int]:
        """The ledgers that this one continues, and until which place it accounts for them."""
        return dict(zip(self.continues, self.accounted, strict=True))


@dataclass(frozen=True, slots=True)
class CapSet:
    """The most that an account may ever spend; the empty account is the default for all."""

    type: ClassVar[str] = "cap"
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


@dataclass(frozen=True, slots=True)
class AdmittedTogether:
    """A job was admitted and its greatest possible spend set aside, of each of many accounts."""

    type: ClassVar[str] = "admitted-together"
    job: str
    accounts: list[str]
    units: int  # of each


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
    | CapSet
    | Admitted
    | AdmittedTogether
    | Charged
    | ChargedTogether
    | Stored
    | StoredTogether
    | Purged
    | Abandoned
    | Closed
    | Adopted
    | Bound
)
KINDS: Mapping[str, type[Entry]] = types.MappingProxyType(
    {kind.type: kind for kind in get_args(Entry)}
)


def _type_of(hint: Any) -> tuple[type, type | None]:
    """Return a field's type and, of a list, its elements'."""
    if get_origin(hint) is list:
        return list, get_args(hint)[0]
    return get_origin(hint) or hint, None


_TYPES: Mapping[type[Entry], Mapping[str, tuple[type, type | None]]] = {
    kind: {item.name: _type_of(get_type_hints(kind)[item.name]) for item in fields(kind)}
    for kind in KINDS.values()
}


def canonical(value: Mapping[str, Any]) -> str:
    """Return the one text form of a JSON object."""
    return _ENCODER.encode(value)


def entry_time(reading: float) -> int:
    """Return the clock's reading as the time of an entry: the nearest that can be read back.

    An entry's time is what the machine's clock said, for people. Entries are ordered by their
    places and no rule looks at times, so a clock that is wrong (before 1970, beyond 9999, set
    back, not a number) neither stops a ledger nor makes it unreadable.
    """
    return 0 if math.isnan(reading) else int(min(max(reading, 0.0), LATEST))


def line_of(entry: Entry, *, seq: int, time: int) -> str:
    """Return the canonical line of ``entry`` at place ``seq``, written at Unix second ``time``."""
    if not 0 <= time <= LATEST:
        raise ValueError("an entry's time cannot be read back")
    wanted = _TYPES[type(entry)]
    values = {name: getattr(entry, name) for name in wanted}
    if not all(_fits(value, wanted[name]) for name, value in values.items()):
        raise ValueError("an entry has a field of the wrong type")  # it could not be read back
    return canonical({"seq": seq, "time": time, "type": entry.type, **values})


def entry_from_line(line: str) -> tuple[int, int, Entry]:
    """Read a line back as ``(seq, time, entry)``; `ValueError` unless it is canonical and whole."""
    values = json.loads(line)
    if not isinstance(values, dict) or canonical(values) != line:
        raise ValueError("an entry is not in canonical form")
    seq, time = values.pop("seq", None), values.pop("time", None)
    kind = KINDS.get(values.pop("type", ""))
    if type(seq) is not int or type(time) is not int or kind is None:
        raise ValueError("an entry lacks its place, time or type")
    if not 0 <= time <= LATEST:
        raise ValueError("an entry has a time that no clock shows")
    wanted = _TYPES[kind]
    if values.keys() != wanted.keys():
        raise ValueError("an entry has other fields than its type")
    if not all(_fits(value, wanted[name]) for name, value in values.items()):
        raise ValueError("an entry has a field of the wrong type")
    return seq, time, kind(**values)


def _fits(value: Any, wanted: tuple[type, type | None]) -> bool:
    """Return whether a field is of its type exactly: a boolean is no integer here."""
    outer, inner = wanted
    if inner is None:
        return type(value) is outer
    return type(value) is list and {type(each) for each in value} <= {inner}


def chain(previous: bytes, line: str) -> bytes:
    """Return the next hash of the chain."""
    return hashlib.sha256(previous + line.encode()).digest()
