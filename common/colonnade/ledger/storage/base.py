"""What a ledger needs of where its lines are kept, and the simplest place: memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from colonnade.ledger.state import Head, StoredRelease
from colonnade.ledger.storage.loading import StoredRows

# No body is larger.
MAX_BODY_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One line with its place and hash, and the bytes that belong to it, if any."""

    seq: int
    line: str
    chain_hash: bytes
    idempotency_key: bytes | None = None
    body: bytes | None = None
    purges: StoredRelease | None = None  # what this one deletes


class Storage(StoredRows, Protocol):
    """Keeps rows; what `append` returned from is durable."""

    def append(self, rows: Sequence[StoredRow], head: Head, *, releases: bool) -> None:
        """Keep ``rows`` and note the new ``head``; ``releases`` if bytes may now leave."""

    def require_space(self, more: int = 0) -> None:
        """Refuse with `LowDisk` unless a charge and its answer surely fit, and ``more`` bytes."""

    def settle(self, head: Head) -> None:
        """Make everything read at the start as durable as a new release, mirror included."""

    def scrub(self) -> None:
        """Leave nothing of purged bytes in the files."""

    def stop(self, reason: str) -> None:
        """Note, durably, that this ledger must not be opened any more."""

    def close(self) -> None:
        """Close the files."""


@dataclass(slots=True)
class MemoryStorage:
    """Rows in memory, for simulations and tests."""

    kept: list[StoredRow] = field(default_factory=list)
    bodies: dict[int, bytes] = field(default_factory=dict)
    mirror: Head | None = None
    stopped: str = ""

    def rows(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield ``(seq, line, hash)`` in order."""
        return iter([(row.seq, row.line, row.chain_hash) for row in self.kept])

    def body(self, seq: int) -> bytes | None:
        """Return the bytes kept with row ``seq``."""
        return self.bodies.get(seq)

    def append(self, rows: Sequence[StoredRow], head: Head, *, releases: bool) -> None:  # noqa: ARG002
        """Keep ``rows`` and note the new ``head``."""
        for row in rows:
            self.kept.append(row)
            if row.body is not None:
                self.bodies[row.seq] = row.body
            if (kept := row.purges) is not None:
                left = kept.blanked(self.bodies.pop(kept.seq))
                if left is not None:
                    self.bodies[kept.seq] = left
        self.mirror = head

    def witnessed(self) -> Head | None:
        """Return the head noted last."""
        return self.mirror

    def require_space(self, more: int = 0) -> None:
        """Accept: memory has no disk."""

    def settle(self, head: Head) -> None:
        """Note the head."""
        self.mirror = head

    def scrub(self) -> None:
        """Do nothing: nothing is left."""

    def stop(self, reason: str) -> None:
        """Note the reason."""
        self.stopped = reason

    def close(self) -> None:
        """Do nothing."""
