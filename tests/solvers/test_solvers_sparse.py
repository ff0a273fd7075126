"""A sparse table, by columns or by rows, is the dense one without its zeros."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from support.solvers import sparse_of, toy

from colonnade.core.arrays import Int16Array
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.solvers.designs.dense import Design, dense_design
from colonnade.solvers.designs.sparse import SparseDesign, SparseRows, sparse_design

DRAW = np.random.default_rng(8)
X = DRAW.normal(size=(40, 5)) * (DRAW.random((40, 5)) < 0.4)
X[7], X[:, 2] = 0.0, 0.0  # a row and a column without anything
BOUNDS = [Bounds(-end, end) for end in (0.5, 1.0, 3.0, 0.3, 1e-3)]


def whole(design: Design) -> Int16Array:
    """Return all values, ``(n_rows, n_features)``, as both ways of reading them must agree on."""
    rows, columns = design.by_rows(), design.by_columns()
    out = np.zeros(design.shape, np.int16)
    for i in range(design.shape[0]):
        part = slice(rows.starts[i], rows.starts[i + 1])
        where = slice(None) if rows.shared else rows.columns[part]
        out[i, where] = rows.values[part]
    for j in range(design.shape[1]):
        margins = np.zeros(design.shape[0])
        columns.shift(j, 1.0 / float(columns.units[j]), margins)
        np.testing.assert_allclose(margins, out[:, j], rtol=1e-12)
    return out


@pytest.mark.parametrize("row_wise", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_it_holds_what_the_dense_table_does(form: str, intercept: bool, row_wise: bool) -> None:
    dense = dense_design(X, BOUNDS, intercept=intercept)
    thin = sparse_design(
        sparse.coo_array(X).asformat(form), BOUNDS, intercept=intercept, row_wise=row_wise
    )
    assert isinstance(thin, SparseRows if row_wise else SparseDesign)
    np.testing.assert_array_equal(thin.units, dense.units)
    np.testing.assert_array_equal(whole(thin), whole(dense))
    assert thin.values.size == np.count_nonzero(X) + 40 * intercept


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_entries_that_stand_twice_are_one_and_the_callers_matrix_is_left_alone(form: str) -> None:
    # Each value in two halves, in any order: were they kept, a row would count twice in a sum.
    halves = sparse.coo_array(X / 2)
    rows, columns = halves.coords
    order = DRAW.permutation(2 * rows.size)
    twice = sparse.coo_array(
        (np.tile(halves.data, 2)[order], (np.tile(rows, 2)[order], np.tile(columns, 2)[order])),
        shape=X.shape,
    )
    given = _unsummed(twice, form)
    before = given.data.copy(), given.indices.copy()
    thin = sparse_design(given, BOUNDS)
    np.testing.assert_array_equal(whole(thin), whole(dense_design(X, BOUNDS)))
    np.testing.assert_array_equal(given.data, before[0])
    np.testing.assert_array_equal(given.indices, before[1])


def _unsummed(entries: Any, form: str) -> Any:
    """Return a compressed matrix in which entries still stand twice and out of order."""
    rows, columns = entries.coords
    major, minor = (rows, columns) if form == "csr" else (columns, rows)
    order = np.argsort(major, kind="stable")
    starts = np.searchsorted(major[order], np.arange(X.shape[form == "csc"] + 1))
    made = sparse.csr_array if form == "csr" else sparse.csc_array
    matrix = made((entries.data[order], minor[order], starts), shape=X.shape)
    assert not matrix.has_canonical_format
    return matrix


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, -1e300, 1.0])
def test_no_float_becomes_an_integer_outside_the_grid(value: float) -> None:
    one = sparse.csr_array(np.array([[1.0]]))
    one.data[:] = value
    (found,) = sparse_design(one, [Bounds(-1.0, 1.0)]).values.tolist()
    assert abs(found) == GRID


def test_a_matrix_that_says_wrongly_that_its_entries_stand_once_is_refused() -> None:
    given = sparse.csc_array(np.ones((3, 1)))
    assert given.has_canonical_format
    given.indices[:] = 1
    for row_wise in (True, False):
        with pytest.raises(ValueError, match="twice"):
            sparse_design(given, [Bounds(-1.0, 1.0)], row_wise=row_wise)
    given.indices[:] = [0, 1, 3]
    for row_wise in (True, False):
        with pytest.raises(ValueError, match="exist"):
            sparse_design(given, [Bounds(-1.0, 1.0)], row_wise=row_wise)


def test_bounds_must_be_symmetric_and_one_for_each_column() -> None:
    given = sparse.csr_array(X)
    with pytest.raises(ValueError, match="symmetric"):
        sparse_design(given, [Bounds(0.0, 1.0)] * 5)
    with pytest.raises(ValueError, match="5 bounds"):
        sparse_design(given, BOUNDS[:4])


@pytest.mark.parametrize(
    ("indices", "starts", "told"),
    [
        ([0, 0], [0, 2], "twice"),
        ([1, 0], [0, 2], "order"),
        ([0, 2], [0, 2], "exist"),
        ([-1, 1], [0, 2], "exist"),
        ([0, 1], [0, 1], "fit together"),
        ([0, 1], [1, 2], "fit together"),
        ([0, 1], [0, 3, 2], "fit together"),
        ([0], [0, 2], "fit together"),
    ],
)
def test_a_table_whose_places_do_not_rise_is_refused(
    indices: list[int], starts: list[int], told: str
) -> None:
    values, units = np.ones(2, np.int16), np.ones(len(starts) - 1)
    places, begins = np.array(indices, np.int32), np.array(starts)
    with pytest.raises(ValueError, match=told):
        SparseDesign(values, places, begins, 2, units)
    with pytest.raises(ValueError, match=told):
        SparseRows(values, places, begins, np.ones(2))


def test_other_integers_are_refused() -> None:
    with pytest.raises(ValueError, match="int16"):
        SparseDesign(
            np.ones(1, np.int64),
            np.zeros(1, np.int32),
            np.array([0, 1]),
            1,
            np.ones(1),
        )


def test_rows_of_rows_are_not_copied_and_turned_twice_they_are_the_same() -> None:
    thin = sparse_of(toy(60, 4, zeros=0.3).design)
    rows = thin.by_rows()
    by_rows = SparseRows(rows.values, rows.columns, rows.starts, thin.units)
    assert by_rows.by_rows().values is rows.values
    assert thin.by_columns() is thin
    again = by_rows.by_columns()
    np.testing.assert_array_equal(again.values, thin.values)
    np.testing.assert_array_equal(again.indices, thin.indices)
    np.testing.assert_array_equal(again.starts, thin.starts)
