"""Signed heads: a signed statement of where a ledger's chain ends, kept by others as a mirror.

A party signs its head at every session and whenever its budget changes, so that a coordinator also
knows of releases that it was never sent, such as those of a local fit. It keeps the newest, shows
it to the party at the next session, and refuses a head that lies before one that it has seen. A
ledger that does not know a head with its own signature was restored from a backup or run twice: it
stops, and keeps the head for its recovery.

What this does not catch: a coordinator that withholds heads and receipts while an operator rolls
back, and what was spent after the last session by a copy that never attached. Keep the head mirror
on another disk against that.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

from colonnade.ledger.entries import canonical
from colonnade.ledger.receipts import Receipt, verify
from colonnade.ledger.state import Head, LedgerState


@dataclass(frozen=True, slots=True)
class SignedHead:
    """The end of a party's chain, and what led there, under its ledger's key. All is public."""

    type: ClassVar[str] = "head"
    federation: str  # to which it is reported
    party: str
    ledger_id: bytes
    seq: int
    chain_hash: bytes
    spent: int  # by all accounts
    cap: int
    highest: int
    signature: bytes = b""

    @property
    def head(self) -> Head:
        """What a mirror would hold."""
        return Head(self.seq, self.chain_hash, self.spent, self.cap, self.highest)

    def statement(self) -> bytes:
        """Return the bytes that are signed."""
        facts = _plain(self)
        del facts["signature"]
        return b"colonnade head v1\0" + canonical(facts).encode()

    def signed_by(self, public_key: bytes) -> bool:
        """Return whether the signature is that of ``public_key``."""
        return verify(public_key, self.signature, self.statement())


# What others keep of a ledger and may show it.
Evidence: TypeAlias = SignedHead | Receipt


def knows(state: LedgerState, evidence: Evidence) -> bool:
    """Return whether a ledger accounts for ``evidence``, which its own key signed.

    Of its own chain it must have the same hash there. Of a ledger that it continues after a
    recovery it must have taken over what was spent until there. One that it does not know at all
    continues it, or went its own way.
    """
    opened, name = state.opened, evidence.ledger_id.hex()
    if opened is None:
        return False
    if name == opened.ledger_id:
        return state.on_chain(evidence.seq, evidence.chain_hash)
    if isinstance(evidence, Receipt):
        adopted = evidence.spent <= state.spent_by(evidence.account)
        return adopted and name in opened.predecessors
    return evidence.seq <= opened.predecessors.get(name, -1)


def evidence_line(evidence: Evidence) -> str:
    """Return one line of text that `evidence_in` reads back."""
    return canonical({"type": evidence.type, **_plain(evidence)})


def evidence_in(lines: Iterable[str]) -> Iterator[Evidence]:
    """Yield the evidence among lines of text; other lines are for people."""
    for line in lines:
        try:
            values = json.loads(line)
            kind = {each.type: each for each in (SignedHead, Receipt)}[values.pop("type")]
            read = {item.name: _read(item.type, values[item.name]) for item in fields(kind)}
            yield kind(**read)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def _plain(evidence: Evidence) -> dict[str, str | int]:
    values = {item.name: getattr(evidence, item.name) for item in fields(evidence)}
    return {name: each.hex() if type(each) is bytes else each for name, each in values.items()}


def _read(kind: object, value: Any) -> Any:
    return bytes.fromhex(str(value)) if kind is bytes else value
