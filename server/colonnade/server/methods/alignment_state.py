"""What the coordinator keeps of an alignment between two rounds.

A small header, and blobs by name: chunks on their way, tags, rows. A round changes few blobs, so a
store writes the header, the blobs that are new or changed, and removes those that are gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from colonnade.methods.alignment.codec import (
    count_to_proto,
    counts_from_proto,
    from_bytes,
    key_to_proto,
    keys_from_proto,
    to_bytes,
)
from colonnade.methods.alignment.crypto.exchange import SignedCount, SignedKey
from colonnade.v1 import alignment_pb2 as pb

Blobs = Mapping[str, bytes]


@dataclass(frozen=True, slots=True, repr=False)
class CoordinatorState:
    """A run as the coordinator sees it. Seed, phantoms and noise are secret until it ends."""

    run: bytes
    seed: bytes
    phantoms: int
    report_noise: tuple[int, ...]
    round: int = 0
    keys: tuple[SignedKey, ...] = ()
    boxes: tuple[tuple[bytes, ...], ...] = ()  # by sender
    counts: tuple[SignedCount, ...] = ()
    confirmations: tuple[bytes, ...] = ()
    n_rows: int = 0
    kept: int = 0
    overlap: tuple[int, ...] = ()
    blobs: Blobs = field(default_factory=dict)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of all lists, once they are known."""
        return tuple(count.count for count in self.counts)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a store has to write and to remove."""

    put: Blobs
    drop: frozenset[str]


def changes(before: CoordinatorState, after: CoordinatorState) -> Changes:
    """Return what changed among the blobs between two states."""
    put = {n: b for n, b in after.blobs.items() if before.blobs.get(n) is not b}
    return Changes(put, frozenset(before.blobs.keys() - after.blobs.keys()))


def header_to_bytes(state: CoordinatorState) -> bytes:
    """Return the bytes of a state without its blobs."""
    return to_bytes(
        pb.AlignmentCoordinatorState(
            run=state.run,
            round=state.round,
            seed=state.seed,
            phantoms=state.phantoms,
            report_noise=state.report_noise,
            keys=map(key_to_proto, state.keys),
            boxes=[pb.AlignmentBoxes(boxes=boxes) for boxes in state.boxes],
            counts=map(count_to_proto, state.counts),
            confirmations=[pb.AlignmentConfirmation(macs=macs) for macs in state.confirmations],
            n_rows=state.n_rows,
            kept=state.kept,
            overlap=state.overlap,
        )
    )


def state_from_bytes(header: bytes, blobs: Blobs) -> CoordinatorState:
    """Read a state from its header and its blobs."""
    message = from_bytes(pb.AlignmentCoordinatorState, header, "the state of the alignment")
    return CoordinatorState(
        run=message.run,
        round=message.round,
        seed=message.seed,
        phantoms=message.phantoms,
        report_noise=tuple(message.report_noise),
        keys=keys_from_proto(message.keys),
        boxes=tuple(tuple(boxes.boxes) for boxes in message.boxes),
        counts=counts_from_proto(message.counts),
        confirmations=tuple(each.macs for each in message.confirmations),
        n_rows=message.n_rows,
        kept=message.kept,
        overlap=tuple(message.overlap),
        blobs=dict(blobs),
    )
