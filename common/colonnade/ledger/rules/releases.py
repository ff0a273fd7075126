"""Rules of releases: charged once and at its price, stored once, never refunded."""

import operator
from collections.abc import Sequence

from colonnade.core.errors import BudgetExceeded, ReleasePurged, RequestConflict
from colonnade.ledger.entries import (
    Abandoned,
    Charged,
    ChargedTogether,
    Purged,
    ReleaseKey,
    Stored,
    StoredTogether,
)
from colonnade.ledger.rules.shapes import check_digests, check_lists
from colonnade.ledger.rules.spending import check_open, reserve, spend
from colonnade.ledger.state import Charge, LedgerState, StoredRelease, abandonment
from colonnade.privacy.accounting import format_units
from colonnade.privacy.disclosure import PREDICTION, Disclosure
from colonnade.privacy.mechanisms import Mechanism, record_of
from colonnade.privacy.membership import MEMBERSHIP, Covered, MembershipNoise
from colonnade.privacy.records import mechanism_from_record


def check_charge(
    state: LedgerState, key: ReleaseKey, *, mechanism: Mechanism, request_sha256: str
) -> bool:
    """Return whether ``key`` still has to be charged; refuse what must not be answered."""
    if (earlier := state.charges.get(key)) is None:
        check_open(state, key.job)
        if key.job in state.docket.proposals and key.job not in state.scoped.places:
            raise ValueError("a proposed job is charged before it was admitted")
        if isinstance(mechanism, Disclosure) != (key.account == PREDICTION):
            raise ValueError("predictions have an account of their own, and it has no others")
        admitted = state.admitted.get((key.job, key.account))
        state.people.check_charge(key, mechanism.cost, admitted=admitted)
        if isinstance(mechanism, Covered):
            _check_covered(state, key)
        else:
            _check_affordable(state, key, mechanism.cost)
        return True
    asked = request_sha256, record_of(mechanism)
    if (earlier.request_sha256, record_of(earlier.mechanism)) != asked:
        raise RequestConflict(
            f"release {key.kind} of round {key.round} was asked before with another request; "
            "a key is answered once"
        )
    if key in state.purged:
        raise ReleasePurged(
            f"release {key.kind} of round {key.round} was purged and is never drawn again"
        )
    if key in state.abandoned:
        raise abandonment(key)
    if key not in state.stored:
        check_open(state, key.job)
    return False


def _check_covered(state: LedgerState, key: ReleaseKey) -> None:
    """Refuse what is free unless the same job's dummies were paid for by the same account."""
    paid = state.charges.get(ReleaseKey(key.job, 0, MEMBERSHIP, key.account))
    if paid is None or not isinstance(paid.mechanism, MembershipNoise):
        raise ValueError("a release is said to be covered by dummies that nobody paid for")


def _check_affordable(state: LedgerState, key: ReleaseKey, units: int) -> None:
    left = state.left_of(key.job).get(key.account)
    if left is None:
        state.unreserved(key.account).charge(units)
        state.scoped.check_outside(key.job, key.account, units)
    elif units > left:
        raise BudgetExceeded(
            f"the release costs {format_units(units)} but {format_units(left, left=True)} is "
            "left of what the job was admitted with"
        )


def charge(
    state: LedgerState,
    entry: Charged | ChargedTogether,
    accounts: Sequence[str],
    requests: Sequence[str],
) -> None:
    """Take what each of ``accounts`` paid for a release; nothing changes before all is checked."""
    check_lists(accounts, requests)
    check_digests(requests)
    # The price is recomputed: an entry cannot understate it.
    mechanism, units = mechanism_from_record(entry.mechanism), entry.units
    if mechanism.cost != units:
        raise ValueError("a charge differs from the price of its mechanism")
    keys = [ReleaseKey(entry.job, entry.round, entry.kind, account) for account in accounts]
    for key, request in zip(keys, requests, strict=True):
        if not check_charge(state, key, mechanism=mechanism, request_sha256=request):
            raise ValueError("a release is charged twice")
    left = state.left.get(entry.job)
    for key, account, request in zip(keys, accounts, requests, strict=True):
        state.charges[key] = Charge(units, mechanism, request)
        spend(state, account, units)
        state.people.spend(key, units)
        state.scoped.spend(entry.job, account, units)
        if left is not None and account in left:
            left[account] -= units
            reserve(state, entry.job, account, -units)


def store(
    state: LedgerState,
    entry: Stored | StoredTogether,
    seq: int,
    accounts: Sequence[str],
    digests: Sequence[str],
    spent: Sequence[int],
) -> None:
    """Take the digests of what was released of each of ``accounts``."""
    check_lists(accounts, digests, spent)
    check_digests(digests)
    keys = [ReleaseKey(entry.job, entry.round, entry.kind, account) for account in accounts]
    if not all(map(state.is_due, keys)):
        raise ValueError("a release is stored that was not charged, or twice")
    if any(map(operator.ne, spent, map(state.spent_by, accounts))):
        raise ValueError("a stored release misstates what was spent")
    size = entry.body_bytes
    if size < 0:
        raise ValueError("a release has a negative size")
    for place, (key, digest, units) in enumerate(zip(keys, digests, spent, strict=True)):
        state.stored[key] = StoredRelease(seq, place * size, size, digest, units)


def abandon(state: LedgerState, entry: Abandoned) -> None:
    """Note that paid releases are never tried again."""
    check_lists(entry.accounts)
    if any(not state.is_due(key) for key in entry.keys):
        raise ValueError("a release is abandoned that was not charged, or that was stored")
    state.abandoned.update(entry.keys)


def purge(state: LedgerState, entry: Purged) -> None:
    """Note that a stored release was deleted."""
    if entry.key not in state.stored or entry.key in state.purged:
        raise ValueError("a release is purged that is not there")
    state.purged.add(entry.key)
