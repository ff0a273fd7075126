"""Count the rows of a party's table at or below thresholds, whoever of the people it has."""

from collections.abc import Sequence

import numpy as np

from colonnade.core.arrays import AnyArray, Int32Array, IntArray
from colonnade.data.table import Table
from colonnade.methods.bounds import LEVELS, count_at_most
from colonnade.party.data.bounding.purchases import runs_of


def count_rows(table: Table, columns: Sequence[int], thresholds: Int32Array) -> IntArray:
    """Count the rows at or below the thresholds of the columns at these places.

    Privacy: a sum over rows of a number that is 0 or 1 in every count and follows from the row, its
    place and public numbers, so replacing a row, its presence included, moves a count by at most 1.
    """
    counts, done = [], 0
    for first, last in runs_of(columns):  # views, not copies
        block = table.columns[first : last + 1]
        if last == len(table.columns) and table.label is not None:
            counts.append(count_at_most(block, thresholds[done : done + len(block)]))
            block, done = table.label.reshape(1, -1), done + len(block)
        counts.append(count_at_most(block, thresholds[done : done + len(block)]))
        done += len(block)
    found = np.concatenate(counts)
    if table.presence is not None:
        found += _absent_rows(table.presence, thresholds)
    return found.reshape(-1)


def _absent_rows(presence: AnyArray, thresholds: Int32Array) -> IntArray:
    """Return what to add to counts so that quantiles are those of the people who are present.

    An absent row is zeros, in the middle of the declared bounds, and was counted there. Instead a
    level's own share of absent rows, by their places, counts as below every threshold: then the
    count reaches the level's share of all rows where that of present rows does.
    """
    absent = np.asarray(presence) == 0
    counted = int(absent.sum()) * (thresholds >= 0)
    places = np.arange(absent.size)
    below = [int((absent & (places % q.denominator < q.numerator)).sum()) for q in LEVELS]
    added: IntArray = np.asarray(below, np.int64)[None, :] - counted
    return added
