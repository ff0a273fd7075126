"""Which round does what: a systolic pipeline through the ring of parties.

keys       every party sends a fresh key for exchanges, signed
seeds      every party seals the dummies of the sets that it leads to their other members
counts     every party signs the length of its list
wave t     every party sends chunk ``t`` of its list, multiplies chunk ``t - h`` of the list of the
           party ``h`` places before it (``h`` = 1 .. K - 1), and sends the tags of its own chunk
           ``t - K``, which has been with everybody
rows       every party gets the rows of its list; after the last of these rounds it confirms them
confirm    every party compares the canaries' rows with the others, and accepts

All parties work in every wave, whatever the lists' lengths are. A chunk meets a hop in exactly one
round, so that a party which answers each round once multiplies each list once.
"""

import enum
from dataclasses import dataclass

from colonnade.methods.alignment.spec import AlignmentSpec

FIRST_WAVE = 3
_ROWS_A_POINT = 8  # rows have 4 bytes, points 32


class AlignmentStage(enum.Enum):
    """What a round is for."""

    KEYS = "keys"
    SEEDS = "seeds"
    COUNTS = "counts"
    WAVE = "wave"
    ROWS = "rows"
    CONFIRM = "confirm"


_OPENING = (AlignmentStage.KEYS, AlignmentStage.SEEDS, AlignmentStage.COUNTS)


@dataclass(frozen=True, slots=True)
class Visit:
    """A chunk of a list at a party: hop 0 is its owner's, hop ``K`` its owner's again."""

    owner: int
    chunk: int
    hop: int


@dataclass(frozen=True, slots=True)
class RoundSchedule:
    """The rounds of an alignment whose lists have ``counts`` points."""

    spec: AlignmentSpec
    counts: tuple[int, ...]

    def n_chunks(self, owner: int) -> int:
        """Return how many chunks a list has."""
        return -(-self.counts[owner] // self.spec.chunk)

    def size(self, owner: int, chunk: int) -> int:
        """Return how many points a chunk has."""
        return min(self.spec.chunk, self.counts[owner] - chunk * self.spec.chunk)

    @property
    def waves(self) -> int:
        """Rounds until every chunk has been with everybody."""
        return max(map(self.n_chunks, range(self.spec.n_parties))) + self.spec.n_parties

    @property
    def row_slice(self) -> int:
        """Rows that a round announces."""
        return _ROWS_A_POINT * self.spec.chunk

    @property
    def row_rounds(self) -> int:
        """Rounds that announce rows."""
        return -(-max(self.counts) // self.row_slice)

    @property
    def rounds(self) -> int:
        """Rounds in all."""
        return FIRST_WAVE + self.waves + self.row_rounds + 1

    def stage(self, round_: int) -> AlignmentStage:
        """Return what a round is for."""
        if not 0 <= round_ < self.rounds:
            raise ValueError("the alignment has no such round")
        if round_ < FIRST_WAVE:
            return _OPENING[round_]
        if round_ < FIRST_WAVE + self.waves:
            return AlignmentStage.WAVE
        return AlignmentStage.CONFIRM if round_ == self.rounds - 1 else AlignmentStage.ROWS

    def visits(self, round_: int, party: int) -> tuple[Visit, ...]:
        """Return the chunks that a party handles in a wave, ordered by hop."""
        wave, n = round_ - FIRST_WAVE, self.spec.n_parties
        visits = (Visit((party - hop) % n, wave - hop, hop) for hop in range(n + 1))
        return tuple(v for v in visits if 0 <= v.chunk < self.n_chunks(v.owner))

    def row_range(self, round_: int, party: int) -> tuple[int, int]:
        """Return which rows of its list a party receives in a round, half open."""
        first = (round_ - FIRST_WAVE - self.waves) * self.row_slice
        count = self.counts[party]
        return min(first, count), min(first + self.row_slice, count)

    def confirms(self, round_: int) -> bool:
        """Return whether parties answer a round with MACs: the last one that announces rows."""
        return round_ == self.rounds - 2


def opening_stage(round_: int) -> AlignmentStage | None:
    """Return the stage of a round before the waves, which needs no counts."""
    return _OPENING[round_] if 0 <= round_ < FIRST_WAVE else None
