"""The folder of a party's alignments: secrets of runs that go on, and outcomes of those that ended.

It lies beside the party's table. A state is put in place whole or not at all; the file that it
replaces is overwritten with zeros, as far as a file system lets anybody do that.
"""

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.core.durable import put_whole, shred
from colonnade.core.errors import BadInput, BadMessage, PolicyRefused
from colonnade.methods.alignment.codec import (
    from_bytes,
    run_name,
    spec_from_bytes,
    spec_to_bytes,
    to_bytes,
)
from colonnade.methods.alignment.crypto.canary import Rows
from colonnade.methods.alignment.spec import NO_ROW, AlignmentSpec
from colonnade.party.methods.alignment.lists import Earlier
from colonnade.party.methods.alignment.state import PartyState, state_from_bytes, state_to_bytes
from colonnade.v1 import alignment_pb2 as pb

logger = logging.getLogger(__name__)
FOLDER = "alignments"
_OUTCOME, _STATE, _LISTED, _JOB = ".alignment", ".state", ".listed", ".job"
_LEAST_NAME = 6


@dataclass(frozen=True, repr=False)
class EndedAlignment:
    """The rows of a party's people in an alignment that has ended."""

    spec: AlignmentSpec
    state: PartyState
    ids: tuple[bytes, ...]
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """The alignment's name."""
        return run_name(self.spec).hex()

    @property
    def n_rows(self) -> int:
        """Rows that jobs use."""
        return self.state.kept

    @property
    def rows(self) -> Rows:
        """The row of each id, ``NO_ROW`` for those whom the mode leaves out."""
        return np.frombuffer(self.state.rows, "<u4").astype(np.uint32)

    @functools.cached_property
    def by_id(self) -> dict[bytes, int]:
        """The row of everybody who has one."""
        pairs = zip(self.ids, self.rows.tolist(), strict=True)
        return {each: row for each, row in pairs if row != NO_ROW}

    def earlier(self, ids: Sequence[bytes]) -> Earlier:
        """Return the rows that an extension starts from: those of ``ids``, and of what is carried.

        Dummies and canaries are brought again with their rows, so that none is seen to vanish.
        """
        rows = np.array([self.by_id.get(each, NO_ROW) for each in ids], np.uint32)
        carried = np.frombuffer(self.state.carried_rows, "<u4").astype(np.uint32)
        return Earlier(rows, self.state.carried, carried)

    def row_of(self, texts: Sequence[str | None]) -> int | None:
        """Return the row of the person whose id columns have these texts; None for nobody's."""
        person = self.spec.ids.encode(texts)
        return None if person is None else self.by_id.get(person)


@dataclass(frozen=True, slots=True)
class AlignmentFolder:
    """Where a party keeps its alignments."""

    path: Path

    @classmethod
    def beside(cls, data: Path) -> "AlignmentFolder":
        """Return the folder beside that of a party's table."""
        return cls(data.resolve().parent / FOLDER)

    def state(self, job: str) -> PartyState | None:
        """Return the state of a run that goes on or has just ended."""
        try:
            return state_from_bytes((self.path / (job + _STATE)).read_bytes())
        except FileNotFoundError:
            return None

    def save(self, job: str, state: PartyState) -> None:
        """Keep a state, durably, and overwrite the one before."""
        put_whole(self.path / (job + _STATE), state_to_bytes(state))

    def keep(self, outcome: EndedAlignment) -> None:
        """Keep the rows of a run that has ended, durably."""
        message = pb.AlignmentOutcome(
            spec=spec_to_bytes(outcome.spec), ids=outcome.ids, columns=outcome.columns
        )
        message.state.ParseFromString(state_to_bytes(outcome.state))
        put_whole(self.path / (outcome.name + _OUTCOME), to_bytes(message))

    def erase(self, job: str, *, finished: bool) -> None:
        """Remove the secrets that a run left and, if it did not finish, its rows.

        Rows first, by the name in the state. A state that cannot be read is one that a process
        was killed or lost power over while it overwrote it, and the rows are gone by then.
        """
        try:
            state = None if finished else self.state(job)
        except BadMessage:
            logger.warning("alignment_state_unreadable job=%s erased without it", job[:12])
            state = None
        if state is not None:
            shred(self.path / (state.run.hex() + _OUTCOME))
        for name in (f"{job}{_STATE}", f".{job}{_STATE}.tmp", f".{job}{_STATE}.old"):
            shred(self.path / name)

    def check_job(self, run: bytes, job: str) -> None:
        """Refuse a run that belongs to another job.

        Privacy: signatures name the run, so those of a run mean nothing in another only if no two
        are called the same; and tables of two row orders would go by one name.
        """
        place = self.path / (run.hex() + _JOB)
        if place.is_file() and place.read_text() != job:
            raise PolicyRefused(
                f"alignment {run.hex()[:12]} was begun as another job; a new one needs a "
                "specification with a salt of its own"
            )

    def note_job(self, run: bytes, job: str) -> None:
        """Keep which job a run belongs to, durably."""
        place = self.path / (run.hex() + _JOB)
        if not place.is_file():  # as after a restart
            put_whole(place, job.encode())

    def listed(self, previous: bytes) -> list[tuple[bytes, ...]]:
        """Return whom extensions of an alignment listed, in order, also those that never ended."""
        lists = [
            from_bytes(pb.AlignmentOutcome, place.read_bytes(), str(place))
            for place in self._lists(previous)
        ]
        return [tuple(each.ids) for each in lists]

    def note_listed(self, previous: bytes, ids: Sequence[bytes]) -> None:
        """Keep whom an extension lists, durably."""
        if ids in (known := self.listed(previous)):
            return
        body = to_bytes(pb.AlignmentOutcome(ids=ids))
        put_whole(self.path / f"{previous.hex()}.{len(known):04}{_LISTED}", body)

    def forget_listed(self, previous: bytes) -> None:
        """Remove whom extensions listed, of an alignment that one of them extended for good."""
        for place in self._lists(previous):
            shred(place)

    def _lists(self, previous: bytes) -> list[Path]:
        return sorted(self.path.glob(f"{previous.hex()}.*{_LISTED}"))

    def extended_by(self, previous: bytes) -> str | None:
        """Return the name of the alignment that extends another one, or None."""
        for each in self._outcomes():
            extends = read_outcome(each).spec.extends
            if extends is not None and extends.previous == previous:
                return each.stem
        return None

    def find(self, name: str) -> Path:
        """Return the file of the one alignment whose name begins so."""
        found = self._outcomes()
        fits = [each for each in found if each.name.startswith(name)]
        if len(name) < _LEAST_NAME or len(fits) != 1:
            there = ", ".join(each.name[:12] for each in found) or "none"
            raise BadInput(
                f"{self.path}: {len(fits)} alignments begin with {name[:12]!r}; give at least "
                f"{_LEAST_NAME} characters of one; it has {there}"
            )
        return fits[0]

    def latest(self) -> str | None:
        """Return the name of the alignment that no other one here extends; None if there is none.

        Between several nobody chooses but the caller: parties that chose differently would have
        different orders.
        """
        found = self._outcomes()
        extensions = [each.extends for each in (read_outcome(path).spec for path in found)]
        extended = {each.previous.hex() for each in extensions if each is not None}
        last = [each.stem for each in found if each.stem not in extended]
        if len(last) > 1:
            raise BadInput(
                f"{self.path}: {len(last)} alignments of which none extends another: "
                f"{', '.join(name[:12] for name in last)}; name the one that all parties use"
            )
        return last[0] if last else None

    def _outcomes(self) -> list[Path]:
        return sorted(self.path.glob(f"*{_OUTCOME}")) if self.path.is_dir() else []


def read_outcome(path: Path) -> EndedAlignment:
    """Read the rows that an alignment gave a party's people."""
    try:
        message = from_bytes(pb.AlignmentOutcome, path.read_bytes(), "the file")
        state = state_from_bytes(to_bytes(message.state))
        spec = spec_from_bytes(message.spec)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except BadInput:
        raise BadInput(f"{path}: is no alignment's outcome, or is damaged") from None
    outcome = EndedAlignment(spec, state, tuple(message.ids), tuple(message.columns))
    if not state.ended or run_name(spec) != state.run or not _whole(outcome):
        raise BadInput(f"{path}: is no alignment's outcome, or is damaged")
    return outcome


def _whole(outcome: EndedAlignment) -> bool:
    """Return whether every person has one row or none, and every row at most one person."""
    if len(outcome.state.rows) != 4 * len(outcome.ids) or len({*outcome.ids}) != len(outcome.ids):
        return False
    rows = outcome.rows[outcome.rows != NO_ROW]
    return bool((rows < outcome.n_rows).all()) and np.unique(rows).size == rows.size
