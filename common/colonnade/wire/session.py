"""What both ends of a session agree on."""

from collections.abc import Sequence

from colonnade.ledger.entries import canonical

PROTOCOL = 4

# How a job can end.
ENDINGS = ("finished", "failed", "cancelled")


def enrolment_statement(
    federation: str, party: str, ledger_id: bytes, continues: Sequence[bytes] = ()
) -> bytes:
    """Return what a ledger's key signs to prove that it belongs to a party."""
    facts = {
        "federation": federation,
        "party": party,
        "ledger_id": ledger_id.hex(),
        "continues": [each.hex() for each in continues],
    }
    return b"colonnade enrolment v2\0" + canonical(facts).encode()


def public_text(text: str, limit: int = 300) -> str:
    """Return a peer's text as it may be stored and shown: short and printable."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:limit])
