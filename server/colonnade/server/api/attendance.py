"""Who is connected, and which errors were met: for people, and in memory only.

None of it decides anything. It is lost with the process, and everything in it is public within the
federation.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from colonnade.server.api.auth import Caller
from colonnade.v1 import federation_pb2, jobs_pb2
from colonnade.wire.session import public_text

_MAX_CODES = 100
_MAX_PROGRAM = 40


@dataclass(frozen=True, slots=True)
class Attendant:
    """A party's latest session."""

    seen_at: float
    program: str = ""
    certificate_ends: float = 0.0
    clock_offset_s: float | None = None


@dataclass(slots=True)
class Attendance:
    """Parties by name and errors by code, since the process started."""

    clock: Callable[[], float] = time.time
    started_at: float = field(init=False)
    _parties: dict[str, Attendant] = field(default_factory=dict)
    _errors: dict[str, jobs_pb2.ErrorCount] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.started_at = self.clock()

    def attached(self, caller: Caller, hello: federation_pb2.Hello) -> None:
        """Note a session that begins."""
        now = self.clock()
        ends = 0.0
        if caller.certificate is not None:
            ends = caller.certificate.not_valid_after_utc.timestamp()
        offset = hello.time - now if hello.time else None
        program = public_text(hello.program, _MAX_PROGRAM)
        self._parties[caller.identity.name] = Attendant(now, program, ends, offset)

    def note_seen(self, party: str) -> None:
        """Note a message, or the end of a session."""
        if (found := self._parties.get(party)) is not None:
            self._parties[party] = replace(found, seen_at=self.clock())

    def failed(self, code: str, who: str) -> None:
        """Count an error."""
        code = public_text(code, 64)
        if code not in self._errors and len(self._errors) >= _MAX_CODES:
            return  # a peer chooses some codes, and memory is bounded
        found = self._errors.setdefault(code, jobs_pb2.ErrorCount(code=code))
        found.count += 1
        found.last_from, found.last_at = who, self.clock()

    def describe(self, status: jobs_pb2.PartyStatus) -> jobs_pb2.PartyStatus:
        """Add to a party's status what is known of its latest session."""
        if (found := self._parties.get(status.party)) is not None:
            status.seen_at = self.clock() if status.attached else found.seen_at
            status.program = found.program
            status.certificate_ends = found.certificate_ends
            if found.clock_offset_s is not None:
                status.clock_offset_s = found.clock_offset_s
        return status

    @property
    def errors(self) -> list[jobs_pb2.ErrorCount]:
        """The errors met, the most frequent first."""
        return sorted(self._errors.values(), key=lambda each: (-each.count, each.code))
