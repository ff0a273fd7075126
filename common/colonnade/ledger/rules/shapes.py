"""What holds of an entry by itself: its lists, digests and texts."""

from collections.abc import Sequence

from colonnade.ledger.entries import Bound
from colonnade.privacy.membership import MEMBERSHIP


def check_lists(accounts: Sequence[str], *others: Sequence[object]) -> None:
    """Refuse an entry that lists an account twice, or nobody, or other things than accounts."""
    if not accounts or len({*accounts}) != len(accounts):
        raise ValueError("an entry lists nobody, or an account twice")
    if {"", MEMBERSHIP} <= {*accounts}:
        raise ValueError("an entry lists both accounts of the same people")
    if any(len(other) != len(accounts) for other in others):
        raise ValueError("an entry lists more or fewer things than accounts")


def check_bound(entry: Bound) -> None:
    """Refuse a binding that names no table or no reason, or that could not be shown."""
    check_digests([entry.table])
    told = entry.dataset + entry.client_ids + entry.other_ledger + entry.reason
    if not entry.reason.strip() or not told.isprintable():
        raise ValueError("a table is bound without a reason that can be shown")


def check_digests(digests: Sequence[str]) -> None:
    """Refuse what is no SHA-256 in hexadecimal."""
    if any(len(each) != 64 or each.strip("0123456789abcdef") for each in digests):
        raise ValueError("an entry has a digest that is none")
