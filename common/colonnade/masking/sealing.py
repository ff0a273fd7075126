"""A part of a sum, signed by its party and sealed to the one that adds the parts.

The signature names the party's place and the run's digest and lies inside the seal, so that only
the receiver learns who signed what, and no part serves another run, place or receiver.

This gives no integrity against a lying party: it signs whatever it sends.
"""

import hashlib
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from colonnade.ledger.receipts import Signer, verify
from colonnade.masking.errors import BadPart
from colonnade.masking.schedule import KeySchedule

_SIGNATURE_BYTES = 64
_TAG_BYTES = 16
SEAL_BYTES = _SIGNATURE_BYTES + _TAG_BYTES  # beside the body
_NONCE = bytes(12)  # a seal's key seals one part only


def seal(schedule: KeySchedule, receiver: int, body: bytes, *, signer: Signer) -> bytes:
    """Sign ``body`` and seal it to the party at ``receiver``.

    A schedule seals one body: store the result before it leaves, and answer a repeat from there.
    """
    signature = signer.sign(_statement(schedule, schedule.place, body))
    key = schedule.seal_key(schedule.place, receiver)
    return ChaCha20Poly1305(key).encrypt(_NONCE, body + signature, None)


def open_part(schedule: KeySchedule, sender: int, sealed: bytes) -> bytes:
    """Return the body from the party at ``sender``, or refuse what it did not seal and sign."""
    peer = schedule.run.peers[sender]
    try:
        key = schedule.seal_key(sender, schedule.place)
        plain = ChaCha20Poly1305(key).decrypt(_NONCE, sealed, None)
    except (InvalidTag, ValueError):
        raise BadPart(f"the part of {peer.party} does not open; it was altered") from None
    body, signature = plain[:-_SIGNATURE_BYTES], plain[-_SIGNATURE_BYTES:]
    if not verify(peer.ledger_key, signature, _statement(schedule, sender, body)):
        raise BadPart(f"the part of {peer.party} does not have its signature")
    return body


def _statement(schedule: KeySchedule, place: int, body: bytes) -> bytes:
    return b"".join(
        (
            b"colonnade masked part v1\0",
            schedule.run.protocol.encode() + b"\0",
            schedule.digest,
            struct.pack(">H", place),
            hashlib.sha256(body).digest(),
        )
    )
