"""Between a ledger's signed heads and protobuf messages."""

from colonnade.core.errors import BadInput
from colonnade.ledger.heads import SignedHead
from colonnade.v1 import federation_pb2 as pb

_SPENT_BYTES = 16


def head_to_proto(head: SignedHead) -> pb.LedgerHead:
    """Encode a signed head; whose it is, and for whom, the receiver knows."""
    return pb.LedgerHead(
        ledger_id=head.ledger_id,
        seq=head.seq,
        chain_hash=head.chain_hash,
        spent_units=head.spent.to_bytes(_SPENT_BYTES, "big"),
        cap_units=head.cap,
        highest_units=head.highest,
        signature=head.signature,
    )


def head_from_proto(message: pb.LedgerHead, *, federation: str, party: str) -> SignedHead:
    """Decode what ``party`` reported to ``federation``; the signature is not checked yet."""
    sizes = (
        (message.ledger_id, 16),
        (message.chain_hash, 32),
        (message.spent_units, _SPENT_BYTES),
        (message.signature, 64),
    )
    if any(len(value) != size for value, size in sizes):
        raise BadInput("a ledger's head is missing or has a field of another size")
    return SignedHead(
        federation,
        party,
        message.ledger_id,
        message.seq,
        message.chain_hash,
        int.from_bytes(message.spent_units, "big"),
        message.cap_units,
        message.highest_units,
        message.signature,
    )
