"""Bounds of a table that has only a part of the people: bought of those who are there."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from colonnade.core.arrays import AnyArray, Int32Array
from colonnade.core.fixedpoint import FINE_GRID
from colonnade.data.table import Table
from colonnade.methods.bounds import QuantilePlan, tight_places
from colonnade.party.data.bounding.counts import count_rows

N_ROWS = 8000


def a_table(values: Int32Array, present: AnyArray) -> Table:
    """Return a table of one feature and a label; absent rows are zeros, as ingest makes them."""
    columns = np.where(present, values, 0).astype(np.int32)
    presence = (present * FINE_GRID).astype(np.int32)
    return Table(Path("x"), cast("Any", None), columns[:1], columns[1], presence)


def places_of(table: Table, n_rows: int) -> list[tuple[int, int]]:
    plan, bodies = QuantilePlan(2, n_rows), list[bytes]()
    for _ in range(plan.steps):
        counts = count_rows(table, (0, 1), plan.thresholds(bodies))
        bodies.append(plan.encode(counts))
    return tight_places(plan, bodies, 1)


def drawn(seed: int) -> tuple[Int32Array, AnyArray]:
    draw = np.random.default_rng(seed)
    # Both lie away from the middle, one on either side, as amounts in wide bounds do.
    values = draw.normal([[-0.8], [0.5]], [[0.02], [0.05]], (2, N_ROWS)) * FINE_GRID
    return values.astype(np.int32), draw.random(N_ROWS) < 0.7


def test_people_who_are_absent_do_not_widen_bounds() -> None:
    values, present = drawn(1)
    found = places_of(a_table(values, present), N_ROWS)
    count = int(present.sum())
    alone = a_table(values[:, present], np.ones(count, bool))
    # 2400 absent rows of which 5 % are counted, give or take 11: 0.2 % of a level among 5600,
    # and a normal quantile at 5 % moves by a tenth of a deviation for 1 %. Of the width, which is
    # 6.6 deviations, that is 0.3 %; twice four times as much is allowed.
    for (low, high), (own_low, own_high) in zip(found, places_of(alone, count), strict=True):
        assert abs(low - own_low) < 0.024 * (own_high - own_low)
        assert abs(high - own_high) < 0.024 * (own_high - own_low)


@pytest.mark.parametrize("threshold", [-FINE_GRID // 2, -1, 0, 1, FINE_GRID // 2])
def test_a_row_moves_a_count_by_one_at_most_though_its_presence_changes(threshold: int) -> None:
    values, present = drawn(2)
    thresholds = np.full((2, 2), threshold, np.int32)
    counts = count_rows(a_table(values, present), (0, 1), thresholds)
    for row in range(60):  # three rounds of the places by which absent rows are counted
        for here in (True, False):
            for value in (-FINE_GRID, 0, FINE_GRID):
                others, there = values.copy(), present.copy()
                others[:, row], there[row] = value, here
                moved = count_rows(a_table(others, there), (0, 1), thresholds) - counts
                assert np.abs(moved).max() <= 1
