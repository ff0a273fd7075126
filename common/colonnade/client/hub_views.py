"""A coordinator's own state, and that of its sessions with parties."""

from dataclasses import dataclass

from colonnade.core.text import printable
from colonnade.v1 import jobs_pb2


@dataclass(frozen=True, slots=True)
class PartySession:
    """A party's latest session with the coordinator.

    Parameters
    ----------
    seen_at
        When it was seen last, in Unix seconds of the coordinator's clock; 0 if not since the
        coordinator started.
    program
        Version of its program, as it says.
    certificate_ends
        In Unix seconds; 0 without a certificate.
    clock_offset_s
        How far its clock was ahead of the coordinator's.

    Examples
    --------
    >>> PartySession(seen_at=1.7e9, program="1.4.0").clock_offset_s is None
    True
    """

    seen_at: float = 0.0
    program: str = ""
    certificate_ends: float = 0.0
    clock_offset_s: float | None = None


@dataclass(frozen=True, slots=True)
class ErrorView:
    """How often an error was met, by its code, and who met it last.

    Examples
    --------
    >>> ErrorView("unreachable", 14, "laboratory", 1.7e9).count
    14
    """

    code: str
    count: int
    last_from: str
    last_at: float


@dataclass(frozen=True, slots=True)
class CoordinatorView:
    """The coordinator as it runs; times are Unix seconds of its clock.

    Examples
    --------
    >>> CoordinatorView("study", "1.4.0", 1.7e9, 1.7e9, ()).errors
    ()
    """

    federation: str
    program: str
    started_at: float
    time: float
    errors: tuple[ErrorView, ...]


def session_from_proto(party: jobs_pb2.PartyStatus) -> PartySession:
    """Decode what is known of a party's latest session; its texts are made safe to print."""
    return PartySession(
        party.seen_at,
        printable(party.program),
        party.certificate_ends,
        party.clock_offset_s if party.HasField("clock_offset_s") else None,
    )


def coordinator_from_proto(found: jobs_pb2.GetCoordinatorResponse) -> CoordinatorView:
    """Decode what a coordinator says of itself; its texts are made safe to print."""
    return CoordinatorView(
        printable(found.federation),
        printable(found.program),
        found.started_at,
        found.time,
        tuple(
            ErrorView(printable(each.code), each.count, printable(each.last_from), each.last_at)
            for each in found.errors
        ),
    )
