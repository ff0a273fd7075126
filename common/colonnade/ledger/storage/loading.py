"""Read a ledger back from where its lines are kept, and believe nothing unchecked."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Protocol

from colonnade.core.errors import LedgerDamaged, LedgerRolledBack
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import Head, LedgerState

_ADVICE = "; see 'colonnade ledger recover'"


class StoredRows(Protocol):
    """The reading half of a ledger's storage."""

    def rows(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield ``(seq, line, hash)`` in order."""

    def body(self, seq: int) -> bytes | None:
        """Return the bytes kept with row ``seq``."""

    def witnessed(self) -> Head | None:
        """Return the head that the mirror knows."""


def load_state(storage: StoredRows) -> LedgerState:
    """Fold the stored rows, checking everything that can be checked."""
    state = LedgerState()
    for seq, line, chain_hash in storage.rows():
        try:
            apply_line(state, line)
        except LedgerDamaged as error:
            raise LedgerDamaged(f"{error}{_ADVICE}") from None
        if (state.head.seq, state.head.chain_hash) != (seq, chain_hash):
            raise LedgerDamaged(f"ledger entry {seq} does not fit the hash chain{_ADVICE}")
    witnessed = storage.witnessed()
    if witnessed is None:
        raise LedgerDamaged("both copies in the head mirror are damaged; restore or recover")
    if not state.on_chain(witnessed.seq, witnessed.chain_hash):
        raise LedgerRolledBack(
            f"the head mirror knows entry {witnessed.seq} but the ledger ends at {state.head.seq} "
            "or differs there: it was restored or damaged; see 'colonnade ledger recover'"
        )
    check_bodies(state, storage.body)
    return state


def check_bodies(state: LedgerState, body: Callable[[int], bytes | None]) -> None:
    """Refuse a ledger that keeps other releases, specifications or policies than entries say."""
    seq, row = 0, None
    for key, kept in state.stored.items():
        if kept.seq != seq:  # those that were stored together follow each other
            seq, row = kept.seq, body(kept.seq)
        if key not in state.purged and (row is None or kept.of(row) is None):
            raise LedgerDamaged(f"the stored release of ledger entry {seq} is damaged{_ADVICE}")
    docket = state.docket
    texts = [(each.seq, job) for job, each in docket.proposals.items() if each.seq]
    texts += [(seq, noted.sha256) for noted, seq in docket.policies.values() if noted.text_bytes]
    for seq, digest in texts:
        if hashlib.sha256(body(seq) or b"").hexdigest() != digest:
            raise LedgerDamaged(f"what ledger entry {seq} keeps is damaged{_ADVICE}")
