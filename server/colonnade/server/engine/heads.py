"""Where parties' ledgers end, as far as the coordinator was told: the newest is kept and shown.

A ledger that was restored from a backup, or is one of two copies, tells a head that lies before
one that was told, or another hash at the same place. It is refused; and because every party is
shown what it told before, it notices by itself, even if its own head lies beyond.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from colonnade.core.errors import BadInput, LedgerBehind
from colonnade.ledger.receipts import Receipt
from colonnade.server.engine.offers import check_budget
from colonnade.server.store.base import PartyRow
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import release_pb2
from colonnade.wire.heads import head_from_proto


class _Place(NamedTuple):
    """A place of a ledger's chain that was told before."""

    seq: int
    chain_hash: bytes
    spent: int  # by all accounts at least


def show_known(row: PartyRow, message: pb.EnrolResponse | pb.Welcome) -> None:
    """Add what the coordinator holds of a party's ledger to an answer to the party."""
    if row.latest:
        message.latest.ParseFromString(row.latest)
    if row.head:
        message.head.ParseFromString(row.head)


def with_head(row: PartyRow, message: pb.LedgerHead, *, federation: str) -> PartyRow:
    """Return the party's row with a head that it tells; refuse one that lies before another."""
    told = head_from_proto(message, federation=federation, party=row.name)
    if told.ledger_id != row.ledger_id or not told.signed_by(row.ledger_key):
        raise BadInput(f"party {row.name} tells a head that its ledger did not sign")
    for known in _known_heads(row):
        if told.seq < known.seq or told.spent < known.spent:
            raise _behind(row, f"ends at entry {told.seq}", known)
        _check_hash(row, told.seq, told.chain_hash, known)
    return replace(row, head=message.SerializeToString(deterministic=True))


def standing_in(
    message: pb.AttachRequest, row: PartyRow, *, federation: str, now: float
) -> dict[str, Any]:
    """Return what changes in the row of a party that tells its ledger and budget, checked."""
    if not message.HasField("standing"):
        return {}
    standing, offer = message.standing, pb.Offer.FromString(row.offer)
    check_budget(row.name, standing)
    offer.cap_units, offer.spent_units = standing.cap_units, standing.spent_units
    offer.reserved_units = standing.reserved_units
    told = with_head(row, standing.head, federation=federation)
    return {"head": told.head, "offer": offer.SerializeToString(), "told_at": now}


def check_receipt(row: PartyRow, receipt: Receipt) -> None:
    """Refuse a receipt that has another hash than was told at the same place of the ledger."""
    for known in _known_heads(row, latest=receipt.seq == row.latest_seq):
        _check_hash(row, receipt.seq, receipt.chain_hash, known)


def _check_hash(row: PartyRow, seq: int, chain_hash: bytes, known: _Place) -> None:
    if seq == known.seq and chain_hash != known.chain_hash:
        raise _behind(row, f"differs at entry {seq}", known)


def _known_heads(row: PartyRow, *, latest: bool = True) -> Iterator[_Place]:
    """Yield where the enrolled ledger's newest head is, and its newest release."""
    head = pb.LedgerHead.FromString(row.head)
    if head.ledger_id == row.ledger_id:
        yield _Place(head.seq, head.chain_hash, int.from_bytes(head.spent_units, "big"))
    if latest:
        receipt = release_pb2.Release.FromString(row.latest).receipt
        if receipt.ledger_id == row.ledger_id:
            yield _Place(receipt.seq, receipt.chain_hash, 0)  # what it says is one account's


def _behind(row: PartyRow, what: str, known: _Place) -> LedgerBehind:
    return LedgerBehind(
        f"the ledger of party {row.name} {what}, but its entry {known.seq} was told before: it was "
        "restored from a backup or run twice; see 'colonnade ledger recover'"
    )
