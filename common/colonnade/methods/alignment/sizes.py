"""Exactly how many bytes a message has, from public numbers alone.

A field of protobuf has one byte for its number (all are below 16) and a varint, which is either its
value or its length; a value of 0 and an empty text are not written.
"""

from collections.abc import Mapping

from colonnade.methods.alignment.crypto.points import POINT_BYTES
from colonnade.methods.alignment.schedule import (
    FIRST_WAVE,
    AlignmentStage,
    RoundSchedule,
    Visit,
    opening_stage,
)
from colonnade.methods.alignment.spec import AlignmentSpec

# The kinds of body that a party sends.
KEYS, SEEDS, COUNT, POINTS = "keys", "seeds", "count", "points"
HOPS, TAGS, CONFIRM, ACCEPTED = "hops", "tags", "confirm", "accepted"
KINDS = (KEYS, SEEDS, COUNT, POINTS, HOPS, TAGS, CONFIRM, ACCEPTED)

SIGNATURE_BYTES = 64
ATTESTATION_BYTES = 4096  # certificates and a signature, padded
PROOF_BYTES = 32 + SIGNATURE_BYTES
TAG_BYTES = 16
ROW_BYTES = 4
MAC_BYTES = 16
BOX_ENTRY_BYTES = 32 + 4  # a seed and a number
BOX_OVERHEAD = 16  # of the cipher's tag


def _varint(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))


def _number(value: int) -> int:
    return 1 + _varint(value) if value else 0


def _text(length: int, *, repeated: bool = False) -> int:
    return 1 + _varint(length) + length if length or repeated else 0


def box_bytes(spec: AlignmentSpec, sender: int) -> int:
    """Return the size of a box that ``sender`` seals to a later party."""
    # Sets that it leads and the receiver is in.
    return BOX_OVERHEAD + (BOX_ENTRY_BYTES << (spec.n_parties - 2 - sender))


def _key() -> int:
    return _text(POINT_BYTES) + _text(SIGNATURE_BYTES) + _text(ATTESTATION_BYTES)


def _count(value: int) -> int:
    return _number(value) + _text(SIGNATURE_BYTES)


def _segment(schedule: RoundSchedule, visit: Visit, proofs: int) -> int:
    size = schedule.size(visit.owner, visit.chunk)
    return (
        _number(visit.owner)
        + _number(visit.chunk)
        + _text(POINT_BYTES * size)
        + _text(PROOF_BYTES * proofs)
    )


def answer_bytes(
    spec: AlignmentSpec, party: int, round_: int, counts: tuple[int, ...] | None = None
) -> dict[str, int]:
    """Return the size of every body that a party sends in a round.

    Parameters
    ----------
    counts
        Lengths of all lists, which are known from the third round on.
    """
    stage = opening_stage(round_)
    if stage is AlignmentStage.KEYS:
        return {KEYS: _key()}
    if stage is AlignmentStage.SEEDS:
        later = spec.n_parties - 1 - party
        return {SEEDS: later * _text(box_bytes(spec, party)) if later else 0}
    if counts is None:
        raise ValueError("the lengths of the lists are not known yet")
    if stage is AlignmentStage.COUNTS:
        return {COUNT: _count(counts[party])}
    return _later_bytes(RoundSchedule(spec, counts), party, round_)


def _later_bytes(schedule: RoundSchedule, party: int, round_: int) -> dict[str, int]:
    spec, stage = schedule.spec, schedule.stage(round_)
    if stage is AlignmentStage.CONFIRM:
        return {ACCEPTED: _number(1)}
    if stage is AlignmentStage.ROWS:
        macs = MAC_BYTES * (spec.n_parties - 1)
        return {CONFIRM: _text(macs)} if schedule.confirms(round_) else {}
    sizes: dict[str, int] = {}
    for visit in schedule.visits(round_, party):
        if visit.hop == spec.n_parties:
            size = schedule.size(visit.owner, visit.chunk)
            old = ROW_BYTES * size if spec.extends else 0
            sizes[TAGS] = _number(visit.chunk) + _text(TAG_BYTES * size) + _text(old)
        else:
            kind = HOPS if visit.hop else POINTS
            body = _text(_segment(schedule, visit, visit.hop + 1), repeated=True)
            sizes[kind] = sizes.get(kind, 0) + body
    return sizes


def task_bytes(
    spec: AlignmentSpec, party: int, round_: int, counts: tuple[int, ...] | None = None
) -> int:
    """Return the size of the task that a party is sent in a round."""
    number, n = _number(round_), spec.n_parties
    stage = opening_stage(round_)
    if stage is AlignmentStage.KEYS:
        return number
    if stage is AlignmentStage.SEEDS:
        return number + n * _text(_key())
    if stage is AlignmentStage.COUNTS:
        return number + sum(_text(box_bytes(spec, sender)) for sender in range(party))
    if counts is None:
        raise ValueError("the lengths of the lists are not known yet")
    schedule = RoundSchedule(spec, counts)
    stage = schedule.stage(round_)
    if stage is AlignmentStage.CONFIRM:
        return number + _text(MAC_BYTES * (n - 1))
    if stage is AlignmentStage.ROWS:
        first, last = schedule.row_range(round_, party)
        return number + _text(2 * 5 + _number(first) + _text(ROW_BYTES * (last - first)))
    if round_ == FIRST_WAVE:
        number += sum(_text(_count(count)) for count in counts)
    visits = [visit for visit in schedule.visits(round_, party) if visit.hop]
    return number + sum(_text(_segment(schedule, visit, visit.hop)) for visit in visits)


def payload(spec: AlignmentSpec, party: int, counts: tuple[int, ...]) -> Mapping[str, int]:
    """Return the bytes of each kind that a party sends in the whole run."""
    total = dict.fromkeys(KINDS, 0)
    for round_ in range(RoundSchedule(spec, counts).rounds):
        for kind, size in answer_bytes(spec, party, round_, counts).items():
            total[kind] += size
    return total


def downlink(spec: AlignmentSpec, party: int, counts: tuple[int, ...]) -> int:
    """Return the bytes of all tasks that a party is sent."""
    rounds = range(RoundSchedule(spec, counts).rounds)
    return sum(task_bytes(spec, party, round_, counts) for round_ in rounds)
