"""Signed receipts: what lets others notice that a ledger was rolled back.

A receipt states, under the ledger's own Ed25519 key, that a release was stored at place ``seq`` of
a chain with a certain hash, and how much the account had spent by then. The coordinator keeps the
latest one and shows it at every session. A ledger that does not reach so far, or has another hash
there, was restored from a backup or run twice, and stops.

What this does not catch: a coordinator that withholds receipts while an operator rolls back. Keep
the head mirror on another disk against that.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from colonnade.core.errors import BadInput, LedgerDamaged

# What reading a key from a file that holds none may raise.
_NO_KEY = (OSError, ValueError, TypeError, UnsupportedAlgorithm)


class Signer(Protocol):
    """Signs a party's messages: a key, or a ledger that holds one."""

    def sign(self, message: bytes, /) -> bytes:
        """Return the Ed25519 signature of ``message``."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A ledger's signed word about one stored release. Every field is public."""

    type: ClassVar[str] = "receipt"
    ledger_id: bytes
    seq: int
    chain_hash: bytes
    account: str
    spent: int  # by the account
    key_sha256: bytes
    body_sha256: bytes
    signature: bytes = b""

    def statement(self) -> bytes:
        """Return the bytes that are signed."""
        return b"".join(
            (
                b"colonnade receipt v1\0",
                self.ledger_id,
                struct.pack(">QQ", self.seq, self.spent),
                self.chain_hash,
                self.key_sha256,
                self.body_sha256,
                self.account.encode(),
            )
        )

    def signed_by(self, public_key: bytes) -> bool:
        """Return whether the signature is that of ``public_key``."""
        return verify(public_key, self.signature, self.statement())


def verify(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether ``signature`` is that of ``public_key`` on ``message``."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    """Return the 32 bytes of the public half."""
    return key.public_key().public_bytes_raw()


def key_to_pem(key: Ed25519PrivateKey) -> bytes:
    """Return the private key as it is kept on disk."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def ledger_key_from_file(path: Path) -> Ed25519PrivateKey:
    """Read the ledger's own key; a ledger without it does not open."""
    try:
        return _key_from_pem(path.read_bytes())
    except _NO_KEY:
        raise LedgerDamaged(
            f"the ledger key {path} is missing or damaged; restore it from where keys are kept"
        ) from None


def approver_key_from_file(path: Path) -> Ed25519PrivateKey:
    """Read the key of the second person who approves a raise of the cap."""
    try:
        return _key_from_pem(path.read_bytes())
    except _NO_KEY as error:
        raise _no_approver_key(path, error) from None


def approver_public_key(path: Path) -> bytes:
    """Read the public half of the approver's key, from a public or a private PEM file."""
    try:
        pem = path.read_bytes()
        if b"PRIVATE" in pem:
            return public_bytes(_key_from_pem(pem))
        key = serialization.load_pem_public_key(pem)
        if not isinstance(key, Ed25519PublicKey):
            raise ValueError("not an Ed25519 key")
        return key.public_bytes_raw()
    except _NO_KEY as error:
        raise _no_approver_key(path, error) from None


def _no_approver_key(path: Path, error: Exception) -> BadInput:
    if isinstance(error, OSError):
        return BadInput(f"{path}: {(error.strerror or 'cannot be read').lower()}")
    return BadInput(f"{path} holds no Ed25519 key; give the approver's PEM file")


def _key_from_pem(pem: bytes) -> Ed25519PrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("not an Ed25519 key")
    return key
