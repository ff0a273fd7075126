"""Entries on their way to the disk, each with a digest of what may happen only once."""

import hashlib
from dataclasses import dataclass

from colonnade.privacy.entries import (
    Admitted,
    Charged,
    Closed,
    Entry,
    Purged,
    ReleaseKey,
    Stored,
)
from colonnade.privacy.mechanisms import Mechanism


@dataclass(frozen=True, slots=True)
class Ask:
    """A release that is asked for: its name, its mechanism, and a digest of the request."""

    key: ReleaseKey
    mechanism: Mechanism
    request_sha256: str


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry, what belongs to it, and what the database refuses to hold twice."""

    entry: Entry
    once: bytes | None = None
    body: bytes | None = None
    purges: int | None = None


def admission(job: str, account: str, units: int) -> Draft:
    """Set ``units`` aside."""
    return Draft(Admitted(job, account, units), _once("admit", job.encode(), account.encode()))


def closing(job: str) -> Draft:
    """End a job."""
    return Draft(Closed(job), _once("close", job.encode()))


def charge(ask: Ask) -> Draft:
    """Pay for a release; the price is the mechanism's own."""
    key, mechanism = ask.key, ask.mechanism
    paid = Charged(
        key.job,
        key.round,
        key.kind,
        key.account,
        mechanism.cost,
        mechanism.record(),
        ask.request_sha256,
    )
    return Draft(paid, _once("charge", key.digest()))


def storing(key: ReleaseKey, body: bytes, *, spent: int) -> Draft:
    """Keep the bytes of a release."""
    digest = hashlib.sha256(body).hexdigest()
    entry = Stored(key.job, key.round, key.kind, key.account, digest, len(body), spent)
    return Draft(entry, _once("store", key.digest()), body)


def purging(key: ReleaseKey, *, seq: int) -> Draft:
    """Delete the bytes that were kept with row ``seq``."""
    entry = Purged(key.job, key.round, key.kind, key.account)
    return Draft(entry, _once("purge", key.digest()), purges=seq)


def _once(what: str, *names: bytes) -> bytes:
    """Return a digest of something that may happen only once."""
    parts = (hashlib.sha256(part).digest() for part in (what.encode(), *names))
    return hashlib.sha256(b"".join(parts)).digest()[:16]
