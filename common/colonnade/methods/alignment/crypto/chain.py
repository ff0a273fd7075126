"""The chain of signatures that a chunk gathers on its way.

Every hop signs (run, list owner, chunk, hop, digest in, digest out). Each party that multiplies a
chunk first checks that the chain begins with the owner and has every hop before it, so that a
coordinator cannot have points of its own multiplied; the owner checks the whole chain before it
takes its list back. A chain shows who handled what. It does not show that a hop multiplied by the
right scalar: canaries do, for bulk errors.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from colonnade.ledger.receipts import Signer, verify
from colonnade.methods.alignment.crypto.points import POINT_BYTES
from colonnade.methods.alignment.refusals import BrokenChain, ListTooLong
from colonnade.methods.alignment.schedule import RoundSchedule, Visit

_START = bytes(32)  # what goes into hop 0


@dataclass(frozen=True, slots=True)
class Proof:
    """One hop's word: the digest of what it gave out, and its signature."""

    digest: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Segment:
    """A chunk of a list on its way, with one proof for each hop so far."""

    owner: int
    chunk: int
    points: bytes
    proofs: tuple[Proof, ...]


def digest(points: bytes) -> bytes:
    """Return what signatures name a chunk's points by."""
    return hashlib.sha256(points).digest()


def _statement(run: bytes, visit: Visit, digest_in: bytes, digest_out: bytes) -> bytes:
    place = struct.pack(">HIH", visit.owner, visit.chunk, visit.hop)
    return b"colonnade alignment hop v1\0" + run + place + digest_in + digest_out


def extend(
    signer: Signer, run: bytes, visit: Visit, points: bytes, before: Sequence[Proof]
) -> Segment:
    """Return the chunk with the points that a hop gives out, and its proof added."""
    digest_in, digest_out = before[-1].digest if before else _START, digest(points)
    signature = signer.sign(_statement(run, visit, digest_in, digest_out))
    return Segment(visit.owner, visit.chunk, points, (*before, Proof(digest_out, signature)))


def check_chain(schedule: RoundSchedule, run: bytes, visit: Visit, segment: Segment) -> None:
    """Refuse a chunk on its way to ``visit`` unless every hop before signed, in order, this chunk.

    Its size must be what the owner's signed count leaves for this chunk.
    """
    spec = schedule.spec
    name = spec.parts[visit.owner].party
    if (segment.owner, segment.chunk) != (visit.owner, visit.chunk):
        raise BrokenChain("a round brings another chunk than it must")
    if len(segment.proofs) != visit.hop:
        raise BrokenChain(f"chunk {visit.chunk} of {name} has another number of hops than it must")
    if len(segment.points) != POINT_BYTES * schedule.size(visit.owner, visit.chunk):
        raise ListTooLong(f"chunk {visit.chunk} of {name} has another size than its owner signed")
    if digest(segment.points) != segment.proofs[-1].digest:
        raise BrokenChain(f"chunk {visit.chunk} of {name} was altered on its way")
    digest_in = _START
    for hop, proof in enumerate(segment.proofs):
        signer = spec.parts[(visit.owner + hop) % spec.n_parties]
        statement = _statement(run, Visit(visit.owner, visit.chunk, hop), digest_in, proof.digest)
        if not verify(signer.public_key, proof.signature, statement):
            raise BrokenChain(
                f"chunk {visit.chunk} of {name} lacks the signature of {signer.party} at hop {hop}"
            )
        digest_in = proof.digest
