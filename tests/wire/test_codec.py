"""What crosses the wire."""

from pathlib import Path

import pytest
from support.ledgers import MECHANISM, VALUE, key, new_ledger

from colonnade.core.errors import BadInput
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Released
from colonnade.privacy.sampling import OsNoise
from colonnade.v1 import release_pb2
from colonnade.wire.codec import receipt_from_bytes, release_from_proto, release_to_proto


@pytest.fixture
def released(tmp_path: Path) -> Released:
    gate = Gate(new_ledger("memory", tmp_path), OsNoise())
    return gate.release(key(3, account="c7"), b"r", MECHANISM, VALUE.copy)


def test_a_release_round_trips(released: Released) -> None:
    message = release_pb2.Release.FromString(release_to_proto(released).SerializeToString())
    assert release_from_proto(message) == released


def test_a_receipt_does_not_fit_another_body_or_key(tmp_path: Path) -> None:
    ledger = new_ledger("memory", tmp_path)
    released = Gate(ledger, OsNoise()).release(key(), b"r", MECHANISM, VALUE.copy)
    public = bytes.fromhex(ledger.opened.public_key)
    message = release_to_proto(released)
    assert release_from_proto(message).receipt.signed_by(public)
    message.body += b"x"
    assert not release_from_proto(message).receipt.signed_by(public)
    other = release_to_proto(released)
    other.key.round += 1
    assert not release_from_proto(other).receipt.signed_by(public)


@pytest.mark.parametrize("name", ["ledger_id", "chain_hash", "signature"])
def test_a_receipt_of_the_wrong_size_is_refused(released: Released, name: str) -> None:
    message = release_to_proto(released)
    setattr(message.receipt, name, b"short")
    with pytest.raises(BadInput, match=name):
        release_from_proto(message)


def test_a_receipt_is_read_from_a_kept_message(released: Released) -> None:
    assert receipt_from_bytes(release_to_proto(released).SerializeToString()) == released.receipt
    with pytest.raises(BadInput, match="Release"):
        receipt_from_bytes(b"\xff\xff\xff")


def test_a_release_has_a_size_that_follows_from_public_numbers(tmp_path: Path) -> None:
    # Same keys, other data, other noise: the same number of bytes.
    sizes = set()
    for value in (VALUE * 0, VALUE * 10**12, VALUE - 10**15):
        ledger = new_ledger("memory", tmp_path)
        released = Gate(ledger, OsNoise()).release(key(), b"r", MECHANISM, value.copy)
        sizes.add(release_to_proto(released).ByteSize())
    assert len(sizes) == 1
