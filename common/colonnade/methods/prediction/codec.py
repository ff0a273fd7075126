"""Between the values of a prediction and protobuf."""

import struct
from collections.abc import Iterable, Sequence

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.masking.schedule import DIGEST_BYTES, KEY_BYTES, NONCE_BYTES, Announcement
from colonnade.methods.messages import read
from colonnade.methods.prediction.spec import ANNOUNCEMENT_BYTES, PredictionPart, PredictionSpec
from colonnade.methods.problem import Solution
from colonnade.v1 import prediction_pb2 as pb

_NUMBERS = ("strength", "mix", "radius", "low", "high")


def spec_to_bytes(spec: PredictionSpec) -> bytes:
    """Return the bytes of a specification."""
    message = pb.PredictionSpec(
        training_job=spec.training_job,
        model_sha256=spec.model,
        penalty=spec.solution.penalty,
        parts=[pb.PredictionPart(party=p.party, ledger_key=p.ledger_key) for p in spec.parts],
        receiver=spec.receiver,
        purpose=spec.purpose,
        gaps=gaps_of(spec.row_numbers()),
        n_rows=spec.n_rows,
        middle=spec.middle,
        chunk=spec.chunk,
    )
    for name, number in spec.solution.numbers.items():
        setattr(message, name, number)
    for party, releases in spec.evidence:
        message.evidence.add(party=party, releases=releases)
    return message.SerializeToString(deterministic=True)


def spec_from_bytes(body: bytes) -> PredictionSpec:
    """Read a specification; `ValueError` for one that cannot be."""
    message = read(pb.PredictionSpec, body, "the specification of a prediction")
    numbers = {name: getattr(message, name) for name in _NUMBERS if message.HasField(name)}
    return PredictionSpec(
        training_job=message.training_job,
        evidence=tuple((each.party, tuple(each.releases)) for each in message.evidence),
        model=message.model_sha256,
        solution=Solution(message.penalty, numbers),
        parts=tuple(PredictionPart(each.party, each.ledger_key) for each in message.parts),
        receiver=message.receiver,
        purpose=message.purpose,
        rows=rows_to_bytes(rows_of(message.gaps)),
        n_rows=message.n_rows,
        middle=tuple(message.middle),
        chunk=message.chunk,
    )


def gaps_of(rows: IntArray) -> list[int]:
    """Return ascending rows as distances, which take a byte or two each."""
    gaps: list[int] = np.diff(rows, prepend=-1).tolist()
    return gaps


def rows_of(gaps: Iterable[int]) -> IntArray:
    """Return the rows that distances stand for; `ValueError` for rows that do not ascend."""
    found = np.array(gaps, np.int64)  # of 32 bits each, and at most a million of them
    rows = np.cumsum(found) - 1
    if (found < 1).any() or (rows.size and int(rows[-1]) >= 2**32):
        raise ValueError("rows must ascend and differ")
    return rows


def rows_to_bytes(rows: IntArray) -> bytes:
    """Return rows as a specification holds them."""
    return rows.astype("<u4").tobytes()


def announcement_to_bytes(announcement: Announcement) -> bytes:
    """Return an announcement as it is sent."""
    return b"".join(
        (
            announcement.public_key,
            announcement.nonce,
            announcement.table,
            announcement.signature,
        )
    )


def announcements_from(bodies: Sequence[bytes]) -> list[Announcement]:
    """Read announcements; `ValueError` for one of another size."""
    if any(len(body) != ANNOUNCEMENT_BYTES for body in bodies):
        raise ValueError("an announcement has 160 bytes")
    signature = ANNOUNCEMENT_BYTES - KEY_BYTES - NONCE_BYTES - DIGEST_BYTES
    parts = struct.Struct(f"{KEY_BYTES}s{NONCE_BYTES}s{DIGEST_BYTES}s{signature}s")
    return [Announcement(*parts.unpack(body)) for body in bodies]
