"""The journal: a ledger's chain in memory and on disk, which never differ while it goes on.

Whatever interrupts a write or shows that something stored has changed ends it for good: the process
must be started again, and reads everything back from the disk.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.errors import BadInput, LedgerDamaged, LedgerFailed, LedgerRolledBack
from colonnade.ledger.drafts import Draft
from colonnade.ledger.entries import Opened, ReleaseKey
from colonnade.ledger.heads import Evidence, SignedHead, evidence_line, knows
from colonnade.ledger.lines import entry_time, line_of
from colonnade.ledger.receipts import Receipt, public_bytes
from colonnade.ledger.rules.fold import extend
from colonnade.ledger.state import REFUSALS
from colonnade.ledger.storage.base import Storage, StoredRow
from colonnade.ledger.storage.loading import load_state


class Journal:
    """The entries of one ledger, in one process."""

    def __init__(
        self, storage: Storage, signer: Ed25519PrivateKey, clock: Callable[[], float]
    ) -> None:
        self.storage, self._signer, self._clock = storage, signer, clock
        self.failed, self._process = False, os.getpid()
        self.state = load_state(storage)
        opened = self.state.opened
        if opened is None or opened.public_key != public_bytes(signer).hex():
            raise LedgerDamaged("the ledger key is not this ledger's; restore the right one")
        self.opened: Opened = opened
        # A process that was killed may have left commits that only the page cache holds and the
        # mirror does not know. They are replayed from now on, so they must be as durable as new.
        storage.settle(self.state.head)

    def check_alive(self) -> None:
        """Fail unless the ledger goes on in this process."""
        if self.failed or os.getpid() != self._process:  # a fork would draw twice for one charge
            raise LedgerFailed("the ledger has stopped; start the process again")

    def now(self) -> int:
        """Return the time of an entry that is written now."""
        return entry_time(self._clock())

    def sign(self, message: bytes) -> bytes:
        """Sign ``message`` with the ledger's key."""
        self.check_alive()
        return self._signer.sign(message)

    def append(self, drafts: Iterable[Draft], *, releases: bool = False) -> None:
        """Append in one commit; each draft is made when those before it count."""
        self.check_alive()
        # Whatever interrupts the lines below, memory and disk may differ: then nothing goes on.
        self.failed = True
        now, rows = self.now(), list[StoredRow]()
        try:
            for draft in drafts:
                line = line_of(draft.entry, seq=self.state.next_seq, time=now)
                extend(self.state, draft.entry, line)
                seq, chain_hash = self.state.next_seq - 1, self.state.hashes[-1]
                rows.append(
                    StoredRow(
                        seq, line, chain_hash, draft.idempotency_key, draft.body, draft.purges
                    )
                )
        except (ValueError, *REFUSALS):
            self.failed = bool(rows)  # what came before it is in memory and not on disk
            raise
        if rows:
            self.storage.append(rows, self.state.head, releases=releases)
        self.failed = False

    def bodies(self, keys: Sequence[ReleaseKey]) -> list[bytes]:
        """Return the bytes of stored releases, as they were stored."""
        self.check_alive()
        self.failed = True
        found = list(self._bodies(keys))
        self.failed = False
        return found

    def _bodies(self, keys: Sequence[ReleaseKey]) -> Iterator[bytes]:
        seq, row = 0, None
        for key in keys:
            kept = self.state.stored[key]
            if kept.seq != seq:
                seq, row = kept.seq, self.storage.body(kept.seq)
            if row is None or (body := kept.of(row)) is None:
                raise LedgerFailed("a stored release has changed; stop and verify the ledger")
            yield body

    def receipt(self, key: ReleaseKey) -> Receipt:
        """Return a signed statement of a stored release."""
        kept = self.state.stored[key]
        facts = (
            bytes.fromhex(self.opened.ledger_id),
            kept.seq,
            self.state.hashes[kept.seq],
            key.account,
            kept.spent,
            key.digest(),
            bytes.fromhex(kept.body_sha256),
        )
        return Receipt(*facts, signature=self.sign(Receipt(*facts).statement()))

    def signed_head(self, federation: str) -> SignedHead:
        """Return the end of the chain under the ledger's key, for a federation to keep."""
        self.check_alive()
        head = self.state.head
        facts = (head.seq, head.chain_hash, head.spent, head.cap, head.highest)
        told = SignedHead(
            federation, self.opened.party, bytes.fromhex(self.opened.ledger_id), *facts
        )
        return replace(told, signature=self.sign(told.statement()))

    def check_evidence(self, evidence: Evidence) -> None:
        """Stop for good if a receipt or head, which someone kept, is not this ledger's past."""
        if not evidence.signed_by(bytes.fromhex(self.opened.public_key)):
            raise BadInput("what was shown is not signed by this ledger; show what it gave")
        if knows(self.state, evidence):
            return
        reason = (
            f"a {evidence.type} of entry {evidence.seq} is held elsewhere but this ledger ends at "
            f"{self.state.head.seq} or differs there: it was restored or run twice"
        )
        self.stop(f"{reason}\n{evidence_line(evidence)}")
        raise LedgerRolledBack(f"{reason}; see 'colonnade ledger recover'")

    def kept(self, seq: int, sha256: str) -> bytes | None:
        """Return what was kept with an entry under its digest; None if nothing was."""
        self.check_alive()
        if (body := self.storage.body(seq)) is None:
            return None
        if hashlib.sha256(body).hexdigest() != sha256:
            self.failed = True
            raise LedgerFailed("a kept specification has changed; stop and verify the ledger")
        return body

    def scrub(self) -> None:
        """Leave nothing of purged bytes in the files."""
        self.check_alive()
        self.failed = True
        self.storage.scrub()
        self.failed = False

    def stop(self, reason: str) -> None:
        """End this ledger for good: a restart must not forget it, nor a recovery."""
        self.failed = True
        self.storage.stop(reason)

    def close(self) -> None:
        """Close the files."""
        self.failed = True
        self.storage.close()
