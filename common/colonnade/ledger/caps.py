"""Caps are signed: by the ledger's key, and by the approver's where the ledger names one."""

from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.ledger.entries import CapSet, canonical


def cap_statement(ledger_id: str, seq: int, entry: CapSet) -> bytes:
    """Return the bytes that the ledger's key and the approver sign for a cap."""
    return (
        b"colonnade cap v2\0"
        + canonical(
            {
                "ledger_id": ledger_id,
                "seq": seq,
                "scope": entry.scope,
                "account": entry.account,
                "units": entry.units,
                "reason": entry.reason,
            }
        ).encode()
    )


def signed_cap(
    ledger_id: str,
    seq: int,
    entry: CapSet,
    *,
    signer: Ed25519PrivateKey,
    approver: Ed25519PrivateKey | None = None,
) -> CapSet:
    """Return ``entry`` with its signatures."""
    message = cap_statement(ledger_id, seq, entry)
    return replace(
        entry,
        signature=signer.sign(message).hex(),
        approver_signature=approver.sign(message).hex() if approver else "",
    )
