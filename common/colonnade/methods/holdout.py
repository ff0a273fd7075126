"""The holdout: a public rule on row numbers says who is left out of a fit, for evaluation.

A job declares how many of a thousand rows are held out. Who they are follows from a hash of the row
number alone, so that every party leaves out the same people without a message, no data decides, and
those whom one job keeps out are kept out by every other that declares as many or more.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray

PARTS = 1000
MAX_HOLDOUT = 500
"""The most rows of a thousand that a job holds out."""

_CHUNK = 2**20  # rows whose hashes are in memory together, to count them
_STEP, _MIX = np.uint64(0x9E3779B97F4A7C15), (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def held_out(n_rows: int, holdout: int, *, first: int = 0) -> NDArray[np.bool_]:
    """Return which rows are held out: those whose hash is below ``holdout`` of a thousand.

    Of ``n_rows`` rows from number ``first`` on.

    The hash is the finaliser of SplitMix64 (Steele, Lea and Flood 2014) of the row number.

    Examples
    --------
    >>> int(held_out(100_000, 200).sum())
    19895
    >>> bool((held_out(1000, 100) <= held_out(1000, 300)).all())  # more keep out the same and more
    True
    """
    if not 0 <= holdout <= MAX_HOLDOUT:
        raise ValueError(f"0 to {MAX_HOLDOUT} rows of a thousand are kept out of a fit")
    if not holdout:
        return np.zeros(n_rows, bool)
    with np.errstate(over="ignore"):
        mixed = np.arange(first + 1, first + n_rows + 1, dtype=np.uint64) * _STEP
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_MIX[0])
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_MIX[1])
    found: NDArray[np.bool_] = (mixed ^ (mixed >> np.uint64(31))) % np.uint64(PARTS) < holdout
    return found


def rows_held_out(n_rows: int, holdout: int) -> IntArray:
    """Return the numbers of the held-out rows."""
    return np.flatnonzero(held_out(n_rows, holdout)).astype(np.int64)


def rows_fitted(n_rows: int, holdout: int) -> int:
    """Return how many rows are left to fit."""
    if not holdout:
        return n_rows
    spans = ((at, min(_CHUNK, n_rows - at)) for at in range(0, n_rows, _CHUNK))
    out = (held_out(count, holdout, first=at) for at, count in spans)
    return n_rows - sum(int(np.count_nonzero(each)) for each in out)


def people_fitted(
    people: Mapping[tuple[str, ...], int], *, n_all: int, n_fitted: int
) -> dict[tuple[str, ...], int]:
    """Return about how many of the people of one party or two are among the rows that are fitted.

    Counts of an alignment are over all rows; a held-out row is drawn independently of presence.

    Examples
    --------
    >>> people_fitted({("hospital", "insurer"): 500}, n_all=1000, n_fitted=800)
    {('hospital', 'insurer'): 400}
    """
    return {names: count * n_fitted // n_all for names, count in people.items()}
