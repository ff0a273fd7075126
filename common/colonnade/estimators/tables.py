"""Turn what scikit-learn passes to ``fit`` into integers under declared bounds."""

# ruff: noqa: N803 - X and C are what scikit-learn calls them

from collections.abc import Sequence
from typing import Any

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import Bounds
from colonnade.solvers.designs.dense import dense_design
from colonnade.solvers.designs.sparse import sparse_design
from colonnade.solvers.fit import SolverTable
from colonnade.solvers.scaling import scaled_label, symmetric


def make_table(
    X: Any,
    y: FloatArray,
    bounds: Sequence[Bounds],
    *,
    label_bounds: Bounds | None,
    intercept: bool,
    row_wise: bool = False,
) -> SolverTable:
    """Quantise a dense array or a sparse matrix, and its label.

    Without an intercept, and for a sparse matrix, bounds are widened to be symmetric about zero:
    zero must stay zero.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [10.0]]), np.array([0.0, 4.0])
    >>> table = make_table(X, y, [Bounds(0, 10)], label_bounds=Bounds(0, 4), intercept=True)
    >>> table.design.shape, table.label
    ((2, 2), array([-1.,  1.]))
    """
    sparse = hasattr(X, "tocsc")
    if sparse or not intercept:
        bounds = symmetric(bounds)
    if label_bounds is not None and not intercept:
        (label_bounds,) = symmetric([label_bounds])
    make = sparse_design if sparse else dense_design
    design = make(X, bounds, intercept=intercept, row_wise=row_wise)
    label = y if label_bounds is None else scaled_label(y, label_bounds)
    return SolverTable(design, tuple(bounds), label, label_bounds, intercept)
