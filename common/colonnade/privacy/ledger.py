"""The ledger: a party's append-only account of everything it ever released.

Privacy: the promise that a party's total is at most its cap rests on these rules. A release is
charged, durably, before a row is read. A key is charged once and has one body, ever. Nothing is
refunded. The sum of charges and of what open jobs have set aside never exceeds the cap. A ledger
that cannot prove it is whole (chain, mirror, digests, prices) does not open; one that fails to
write stops for good.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.errors import (
    BadInput,
    LedgerDamaged,
    LedgerFailed,
    LedgerRolledBack,
)
from colonnade.privacy.accounting import Budget
from colonnade.privacy.caps import signed_cap
from colonnade.privacy.entries import (
    Admitted,
    CapSet,
    Charged,
    Closed,
    Entry,
    Opened,
    Purged,
    ReleaseKey,
    Stored,
    line_of,
)
from colonnade.privacy.mechanisms import Mechanism
from colonnade.privacy.receipts import Receipt, public_bytes
from colonnade.privacy.state import REFUSALS, Head, LedgerState
from colonnade.privacy.storage import MAX_BODY_BYTES, Row, Storage


@dataclass(frozen=True, slots=True)
class Released:
    """Bytes that may leave the party: charged, stored, and the same at every retry."""

    key: ReleaseKey
    body: bytes
    receipt: Receipt


class Ledger:
    """One party's account, in one process; ``lock`` is held by whoever makes a release."""

    def __init__(
        self, storage: Storage, signer: Ed25519PrivateKey, clock: Callable[[], float]
    ) -> None:
        self._storage, self._signer, self._clock = storage, signer, clock
        self._failed, self._process = False, os.getpid()
        self.lock = threading.RLock()
        self._state = _load(storage)
        opened = self._state.opened
        if opened is None or opened.public_key != public_bytes(signer).hex():
            raise LedgerDamaged("the ledger key is not this ledger's; restore the right one")
        self.opened: Opened = opened
        self._ledger_id = bytes.fromhex(opened.ledger_id)
        # A process that was killed may have left commits that only the page cache holds and the
        # mirror does not know. They are replayed from now on, so they must be as durable as new.
        storage.settle(self._state.head)

    # -- reading ---------------------------------------------------------------------------------

    @property
    def head(self) -> Head:
        """The end of the chain."""
        return self._state.head

    @property
    def state(self) -> LedgerState:
        """Everything the entries say; not to be changed."""
        return self._state

    def lines(self) -> Iterator[str]:
        """Yield the entries' lines, as the chain covers them."""
        return (line for _, line, _ in self._storage.rows())

    def budget(self, account: str = "") -> Budget:
        """Return cap and spending of ``account``."""
        return self._state.budget(account)

    def stored(self, key: ReleaseKey) -> Released | None:
        """Return the release of ``key`` if it was stored and not purged."""
        self._check_alive()
        if (found := self._state.stored.get(key)) is None or key in self._state.purged:
            return None
        seq, entry = found
        self._failed = True
        body = self._storage.body(seq)
        if body is None or hashlib.sha256(body).hexdigest() != entry.body_sha256:
            raise LedgerFailed("a stored release has changed; stop and verify the ledger")
        self._failed = False
        return Released(key, body, self._receipt(key, seq, entry))

    def check_receipt(self, receipt: Receipt) -> None:
        """Stop for good if ``receipt``, which someone kept, knows more than this ledger does."""
        if not receipt.signed_by(bytes.fromhex(self.opened.public_key)):
            raise BadInput("the receipt was not signed by this ledger; show the one it gave")
        name = receipt.ledger_id.hex()
        if name == self.opened.ledger_id:
            known = self._state.on_chain(receipt.seq, receipt.chain_hash)
        elif name in self.opened.continues.split():  # from before a recovery: was it adopted?
            known = receipt.spent <= self._state.spent_by(receipt.account)
        else:
            known = False  # the same key signs for a ledger that this one does not know
        if known:
            return
        self._failed = True
        reason = (
            f"a receipt for entry {receipt.seq} is held elsewhere but this ledger ends at "
            f"{self.head.seq} or differs there: it was restored or run twice"
        )
        self._storage.stop(reason)  # a restart must not forget it
        raise LedgerRolledBack(f"{reason}; see 'colonnade ledger recover --help'")

    # -- writing ---------------------------------------------------------------------------------

    def admit(self, job: str, *, units: int, account: str = "") -> None:
        """Set aside ``units`` for ``job``; asking the same again changes nothing."""
        self._check_alive()
        if self._state.check_admission(job, account, units):
            self._append(
                Admitted(job, account, units), once=_once("admit", job.encode(), account.encode())
            )

    def close_job(self, job: str) -> None:
        """Free what ``job`` had set aside and never charge it again."""
        self._check_alive()
        if job not in self._state.closed:
            self._append(Closed(job), once=_once("close", job.encode()))

    def charge(self, key: ReleaseKey, mechanism: Mechanism, *, request_sha256: str) -> Mechanism:
        """Pay for ``key``, durably; asking the same again changes nothing.

        Returns the mechanism that was paid for, made from the entry: what must be used.
        """
        self._check_alive()
        if self._state.check_charge(key, mechanism=mechanism, request_sha256=request_sha256):
            self._storage.require_space()
            record = mechanism.record()
            entry = Charged(
                key.job, key.round, key.kind, key.account, mechanism.cost, record, request_sha256
            )
            self._append(entry, once=_once("charge", key.digest()))
        return self._state.paid[key]

    def store(self, key: ReleaseKey, body: bytes) -> Released:
        """Keep the bytes of a paid release, durably, and hand them out."""
        self._check_alive()
        if len(body) > MAX_BODY_BYTES:
            raise ValueError(f"a release has at most {MAX_BODY_BYTES} bytes")
        entry = Stored(
            key.job,
            key.round,
            key.kind,
            key.account,
            body_sha256=hashlib.sha256(body).hexdigest(),
            body_bytes=len(body),
            spent=self._state.spent_by(key.account),
        )
        self._append(entry, once=_once("store", key.digest()), body=body, releases=True)
        released = self.stored(key)
        if released is None:
            raise LedgerFailed("a release was stored and is not there; stop and verify the ledger")
        return released

    def purge(self, key: ReleaseKey) -> None:
        """Delete the bytes of ``key`` and leave a tombstone: it is never answered again."""
        self._check_alive()
        if key in self._state.purged:
            return
        if key not in self._state.stored:
            raise BadInput(f"there is no stored release {key.kind} of round {key.round} to purge")
        seq, _ = self._state.stored[key]
        entry = Purged(key.job, key.round, key.kind, key.account)
        self._append(entry, once=_once("purge", key.digest()), purges=seq)

    def set_cap(
        self,
        units: int,
        *,
        reason: str,
        account: str = "",
        approver: Ed25519PrivateKey | None = None,
    ) -> None:
        """Append a signed cap; a raise needs the approver's key too if the ledger names one."""
        self._check_alive()
        entry = signed_cap(
            self.opened.ledger_id,
            self._state.next_seq,
            CapSet(account, units, reason, "", ""),
            signer=self._signer,
            approver=approver,
        )
        try:
            self._state.check_cap(entry)
        except ValueError as error:
            raise BadInput(f"the cap was not changed: {error}") from None
        self._append(entry, releases=True)

    def bind_dataset(self, digest: bytes) -> None:
        """Note the digest of the party's table; it stays on this disk."""
        self._check_alive()
        self._failed = True
        self._storage.bind_dataset(digest)
        self._failed = False

    def dataset(self) -> bytes | None:
        """Return the digest of the party's table, if one was noted."""
        return self._storage.dataset()

    def sign(self, message: bytes) -> bytes:
        """Sign ``message`` with the ledger's key."""
        self._check_alive()
        return self._signer.sign(message)

    def close(self) -> None:
        """Give the files free."""
        self._failed = True
        self._storage.close()

    # -- inside ----------------------------------------------------------------------------------

    def _check_alive(self) -> None:
        if self._failed or os.getpid() != self._process:  # a fork would draw twice for one charge
            raise LedgerFailed("the ledger has stopped; start the process again")

    def _append(
        self,
        entry: Entry,
        *,
        once: bytes | None = None,
        body: bytes | None = None,
        purges: int | None = None,
        releases: bool = False,
    ) -> None:
        # Whatever interrupts the lines below, memory and disk may differ: then nothing goes on.
        self._failed = True
        try:
            line = line_of(entry, seq=self._state.next_seq, time=int(self._clock()))
            self._state.extend(entry, line)
        except (ValueError, *REFUSALS):
            self._failed = False  # a rule refused it before anything changed
            raise
        head = self._state.head
        row = Row(head.seq, line, head.chain_hash, once, body, purges)
        self._storage.append([row], head, releases=releases)
        self._failed = False

    def _receipt(self, key: ReleaseKey, seq: int, entry: Stored) -> Receipt:
        facts = (
            self._ledger_id,
            seq,
            self._state.hashes[seq],
            key.account,
            entry.spent,
            key.digest(),
            bytes.fromhex(entry.body_sha256),
        )
        return Receipt(*facts, signature=self._signer.sign(Receipt(*facts).statement()))


def _once(what: str, *names: bytes) -> bytes:
    """Return a digest of something that may happen only once."""
    parts = (hashlib.sha256(part).digest() for part in (what.encode(), *names))
    return hashlib.sha256(b"".join(parts)).digest()[:16]


def _load(storage: Storage) -> LedgerState:
    """Fold the stored rows, checking everything that can be checked."""
    state = LedgerState()
    for seq, line, chain_hash in storage.rows():
        state.apply(line)
        if (state.head.seq, state.head.chain_hash) != (seq, chain_hash):
            raise LedgerDamaged(f"ledger entry {seq} does not fit the hash chain")
    witnessed = storage.witnessed()
    if witnessed is None:
        raise LedgerDamaged("both copies in the head mirror are damaged; restore or recover")
    if not state.on_chain(witnessed.seq, witnessed.chain_hash):
        raise LedgerRolledBack(
            f"the head mirror knows entry {witnessed.seq} but the ledger ends at {state.head.seq} "
            "or differs there: it was restored or damaged; see 'colonnade ledger recover --help'"
        )
    for key, (seq, entry) in state.stored.items():
        body = None if key in state.purged else storage.body(seq)
        if key not in state.purged and (
            body is None or hashlib.sha256(body).hexdigest() != entry.body_sha256
        ):
            raise LedgerDamaged(f"the stored release of ledger entry {seq} is damaged")
    return state
