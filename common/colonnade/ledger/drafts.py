"""Entries about to be appended, each with an idempotency key for what may happen only once."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from colonnade.ledger.entries import (
    Abandoned,
    Admitted,
    AdmittedTogether,
    Charged,
    ChargedTogether,
    Closed,
    Entry,
    Purged,
    ReleaseKey,
    Stored,
    StoredTogether,
    canonical,
)
from colonnade.ledger.job_entries import AdmittedAfter, Decided, Proposed, Settled
from colonnade.ledger.state import StoredRelease
from colonnade.privacy.mechanisms import Mechanism, record_of


class ReleaseRequest(NamedTuple):
    """A release that is asked for: its name, its mechanism, and a digest of the request."""

    key: ReleaseKey
    mechanism: Mechanism
    request_sha256: str


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry, what belongs to it, and what the database refuses to hold twice."""

    entry: Entry
    idempotency_key: bytes | None = None
    body: bytes | None = None
    purges: StoredRelease | None = None


def admission(job: str, accounts: Sequence[str], units: int, month: str) -> Draft:
    """Set ``units`` of each account aside."""
    idempotency_key = _idempotency_key(
        "admit", job.encode(), *(account.encode() for account in accounts)
    )
    if len(accounts) == 1:
        return Draft(Admitted(job, accounts[0], units, month), idempotency_key)
    return Draft(AdmittedTogether(job, list(accounts), units, month), idempotency_key)


def admission_after(job: str, before: str, units: int) -> Draft:
    """Set ``units`` aside, of what the job before kept."""
    return Draft(AdmittedAfter(job, before, units), _idempotency_key("admit", job.encode(), b""))


def settling(job: str, units: int) -> Draft:
    """End a job and keep a part of what it had set aside."""
    return Draft(Settled(job, units), _idempotency_key("settle", job.encode()))


def proposing(entry: Proposed, spec: bytes | None) -> Draft:
    """Note a job, with its specification unless that is kept already."""
    return Draft(entry, body=spec)


def deciding(entry: Decided) -> Draft:
    """Note an approver's decision."""
    names = (entry.job, entry.approver, str(entry.number))
    return Draft(entry, _idempotency_key("decide", *(name.encode() for name in names)))


def closing(job: str) -> Draft:
    """End a job."""
    return Draft(Closed(job), _idempotency_key("close", job.encode()))


def charge(requests: Sequence[ReleaseRequest]) -> Draft:
    """Pay for releases of one job, round, kind and mechanism; the price is the mechanism's own."""
    (job, round_, kind, account), mechanism = requests[0].key, requests[0].mechanism
    price, record = mechanism.cost, record_of(mechanism)
    if len(requests) == 1:
        request = requests[0].request_sha256
        entry: Entry = Charged(job, round_, kind, account, price, record, request)
    else:
        accounts = [request.key.account for request in requests]
        digests = [request.request_sha256 for request in requests]
        entry = ChargedTogether(job, round_, kind, accounts, price, record, digests)
    return Draft(entry, _idempotency_key("charge", _name([request.key for request in requests])))


def storing(bodies: Mapping[ReleaseKey, bytes], *, spent: Sequence[int]) -> Draft:
    """Keep the bytes of releases of one job, round, kind and size."""
    keys, digests = list(bodies), [hashlib.sha256(body).hexdigest() for body in bodies.values()]
    (job, round_, kind, account), whole = keys[0], b"".join(bodies.values())
    size = len(whole) // len(keys)
    if len(keys) == 1:
        entry: Entry = Stored(job, round_, kind, account, digests[0], size, spent[0])
    else:
        accounts = [key.account for key in keys]
        entry = StoredTogether(job, round_, kind, accounts, digests, size, list(spent))
    return Draft(entry, _idempotency_key("store", _name(keys)), whole)


def abandoning(keys: Sequence[ReleaseKey]) -> Draft:
    """Abandon paid releases of one job, round and kind."""
    job, round_, kind, _ = keys[0]
    entry = Abandoned(job, round_, kind, [key.account for key in keys])
    return Draft(entry, _idempotency_key("abandon", _name(keys)))


def purging(key: ReleaseKey, kept: StoredRelease) -> Draft:
    """Delete the bytes that were kept of a release."""
    entry = Purged(key.job, key.round, key.kind, key.account)
    return Draft(entry, _idempotency_key("purge", _name([key])), purges=kept)


def _name(keys: Sequence[ReleaseKey]) -> bytes:
    """Return what names releases that differ in their accounts alone."""
    if len(keys) == 1:
        return keys[0].digest()
    first, accounts = keys[0], [key.account for key in keys]
    names = {"job": first.job, "round": first.round, "kind": first.kind, "accounts": accounts}
    return canonical(names).encode()


def _idempotency_key(what: str, *names: bytes) -> bytes:
    """Return a digest of something that may happen only once."""
    parts = (hashlib.sha256(part).digest() for part in (what.encode(), *names))
    return hashlib.sha256(b"".join(parts)).digest()[:16]
