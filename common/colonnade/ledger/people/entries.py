"""The kinds of entry by which a ledger shares the account of its people with other ledgers."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Joined:
    """From here on every job is charged to the people's account too, and first; for good."""

    type: ClassVar[str] = "joined"
    account: str  # ledger id of the people's account
    public_key: str
    member: str  # the id of this ledger, or of the one that it continues
    units: int  # spent and set aside before, which the account was charged with
    reason: str
    signature: str  # the account's


@dataclass(frozen=True, slots=True)
class PersonPaid:
    """The people's account was charged with releases of a job that come next here."""

    type: ClassVar[str] = "person"
    job: str
    kind: str  # "table", "membership" or "client": whose price it is
    units: int
    wasted: bool  # the process ended before it was used: it stays charged and covers nothing
    account: str
    account_seq: int  # the account's head after the charge
    chain_hash: str
    spent: int  # by all members, then
    cap: int
    signature: str  # the account's
