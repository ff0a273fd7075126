"""The coordinator's arithmetic: match tags, draw an order, estimate the overlap.

Rows are numbered over the whole union in every mode; a mode only decides how many of them, from the
first, jobs use. So canaries, which two parties list, have rows in every mode.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.methods.alignment.crypto.canary import Rows
from colonnade.methods.alignment.crypto.shuffle import permutation
from colonnade.methods.alignment.sizes import TAG_BYTES
from colonnade.methods.alignment.spec import CANARIES, NO_ROW, AlignmentSpec, Mode

Tags = NDArray[np.uint8]  # (n_tags, 16)


@dataclass(frozen=True, slots=True)
class Matching:
    """Where each list's tags lie in the sorted union, and which lists each member of it is on."""

    places: tuple[IntArray, ...]  # by list
    patterns: IntArray  # by member, one bit a list

    @property
    def size(self) -> int:
        """Members of the union."""
        return self.patterns.size


def match(lists: Sequence[Tags]) -> Matching:
    """Sort the union of all tags; refuse a list with equal ones."""
    words = np.concatenate([np.ascontiguousarray(tags) for tags in lists]).view(">u8")
    words = words.reshape(-1, TAG_BYTES // 8).astype(np.uint64)
    order = np.lexsort((words[:, 1], words[:, 0]))
    ordered = words[order]
    fresh = np.ones(len(ordered), np.bool_)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    place = np.empty(len(ordered), np.int64)
    place[order] = np.cumsum(fresh) - 1
    ends = np.cumsum([len(tags) for tags in lists])
    places = tuple(np.split(place, ends[:-1]))
    patterns = np.zeros(int(fresh.sum()), np.int64)
    for number, mine in enumerate(places):
        if np.unique(mine).size != mine.size:
            raise BadMessage(f"list {number} has equal tags: its ids repeat, or it was spoiled")
        patterns[mine] |= 1 << number
    return Matching(places, patterns)


@dataclass(frozen=True, slots=True)
class Placement:
    """The row of every tag of every list, and how many rows there are and are used."""

    rows: tuple[Rows, ...]
    n_rows: int
    kept: int


def place(
    matching: Matching,
    spec: AlignmentSpec,
    *,
    seed: bytes,
    phantoms: int,
    old_rows: Sequence[Rows] | None = None,
) -> Placement:
    """Draw the order of the rows.

    Phantoms are rows that stand for nobody. Old rows stay where they are: a member of the union has
    the one that any list claims for it, and new members come after all of them.

    Parameters
    ----------
    old_rows
        What each list claims for its tags, ``NO_ROW`` for new ones; only for an extension.
    """
    first = spec.extends.n_rows if spec.extends else 0
    row = np.full(matching.size, -1, np.int64)
    if old_rows is not None:
        _keep_old(row, matching, old_rows, first)
    used_patterns = np.array([spec.uses(pattern) for pattern in range(1 << spec.n_parties)])
    used = used_patterns[matching.patterns]
    new_used, new_rest = np.flatnonzero(used & (row < 0)), np.flatnonzero(~used & (row < 0))
    # The number of used rows hides behind phantoms only where parties cannot count it themselves.
    among_used = phantoms if spec.mode is Mode.UNION else 0
    kept = first + new_used.size + among_used
    n_rows = first + new_used.size + new_rest.size + phantoms
    row[new_used] = first + permutation(seed, b"used", kept - first)[: new_used.size]
    row[new_rest] = kept + permutation(seed, b"rest", n_rows - kept)[: new_rest.size]
    rows = tuple(row[mine].astype(np.uint32) for mine in matching.places)
    return Placement(rows, n_rows, kept)


def _keep_old(row: IntArray, matching: Matching, old_rows: Sequence[Rows], first: int) -> None:
    """Write the rows that lists claim, in place; refuse claims that cannot all be true."""
    for mine, claimed in zip(matching.places, old_rows, strict=True):
        has = claimed != NO_ROW
        where, wanted = mine[has], claimed[has].astype(np.int64)
        if wanted.size and int(wanted.max()) >= first:
            raise BadMessage("a party claims a row that the earlier alignment does not have")
        if bool(((row[where] >= 0) & (row[where] != wanted)).any()):
            raise BadMessage("two parties claim different rows for one person")
        row[where] = wanted
    claimed_once = row[row >= 0]
    if np.unique(claimed_once).size != claimed_once.size:
        raise BadMessage("one row is claimed for two people")


def pattern_counts(matching: Matching, n_parties: int) -> IntArray:
    """Return how many members of the union have each pattern, from pattern 1 on."""
    return np.bincount(matching.patterns, minlength=1 << n_parties)[1:].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Estimated numbers of people by pattern of presence: all that is reported of the overlap.

    Privacy: dummies make what the coordinator counts private towards itself; ``noise`` of the
    coordinator makes what it reports private towards parties, who know dummies
    (`methods.alignment.dummies`). An estimate may be negative.
    """

    n_parties: int
    counts: tuple[int, ...]  # from pattern 1 on

    @classmethod
    def of(cls, counted: IntArray, noise: IntArray, spec: AlignmentSpec) -> "Overlap":
        """Return the estimates, without the dummies' mean and the canaries."""
        expected = [
            (spec.noise.shift + CANARIES * (pattern.bit_count() == 2))
            * (1 + spec.runs_before * spec.uses(pattern))
            for pattern in range(1, 1 << spec.n_parties)
        ]
        estimates = counted + noise - np.array(expected, np.int64)
        return cls(spec.n_parties, tuple(int(each) for each in estimates))

    def at_all(self, *places: int) -> int:
        """Estimate how many people all of the parties at ``places`` list."""
        wanted = sum(1 << place for place in places)
        return sum(c for p, c in enumerate(self.counts, 1) if p & wanted == wanted)
