"""Between domain values and protobuf messages.

Only a `Released`, which the ledger alone makes, can be encoded as a release: a bare array has no
way onto the wire, and the type checker sees to it.
"""

import hashlib
from collections.abc import Iterator
from typing import Protocol

from google.protobuf.message import DecodeError

from colonnade.core.errors import BadInput
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.ledger import Released
from colonnade.ledger.receipts import Receipt
from colonnade.v1 import federation_pb2, release_pb2


class Answer(Protocol):
    """What a party answers to a task: releases, which only its ledger makes."""

    def __iter__(self) -> Iterator[Released]:
        """Return an iterator over the releases."""

    def put_into(self, submission: federation_pb2.Submission) -> None:
        """Write the answer into a submission."""


class Releases(tuple[Released, ...]):
    """All kinds that a round asks of a party, where all parties answer."""

    __slots__ = ()

    def put_into(self, submission: federation_pb2.Submission) -> None:
        """Write the releases into a submission."""
        submission.releases.extend(map(release_to_proto, self))


def release_to_proto(released: Released) -> release_pb2.Release:
    """Encode a release."""
    key = released.key
    return release_pb2.Release(
        key=release_pb2.ReleaseKey(
            job_id=key.job, round=key.round, kind=key.kind, account=key.account
        ),
        body=released.body,
        receipt=receipt_to_proto(released.receipt),
    )


def receipt_to_proto(receipt: Receipt) -> release_pb2.Receipt:
    """Encode what a receipt says besides the key and the body that it stands beside."""
    return release_pb2.Receipt(
        ledger_id=receipt.ledger_id,
        seq=receipt.seq,
        chain_hash=receipt.chain_hash,
        spent_units=receipt.spent,
        signature=receipt.signature,
    )


def release_from_proto(message: release_pb2.Release) -> Released:
    """Decode a release; what the receipt says of key and body is computed from them."""
    key = ReleaseKey(message.key.job_id, message.key.round, message.key.kind, message.key.account)
    sizes = {
        "ledger_id": (len(message.receipt.ledger_id), 16),
        "chain_hash": (len(message.receipt.chain_hash), 32),
        "signature": (len(message.receipt.signature), 64),
    }
    for name, (got, wanted) in sizes.items():
        if got != wanted:
            raise BadInput(f"a receipt's {name} has {got} bytes instead of {wanted}")
    receipt = Receipt(
        ledger_id=message.receipt.ledger_id,
        seq=message.receipt.seq,
        chain_hash=message.receipt.chain_hash,
        account=key.account,
        spent=message.receipt.spent_units,
        key_sha256=key.digest(),
        body_sha256=hashlib.sha256(message.body).digest(),
        signature=message.receipt.signature,
    )
    return Released(key, message.body, receipt)


def receipt_from_bytes(message: bytes) -> Receipt:
    """Read the receipt from the bytes of a ``Release``, as a coordinator keeps them."""
    try:
        return release_from_proto(release_pb2.Release.FromString(message)).receipt
    except DecodeError:
        raise BadInput("the file holds no Release message") from None
