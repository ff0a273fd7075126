"""Turn what scikit-learn passes to ``fit`` into integers under declared bounds."""

# ruff: noqa: N803 - X and C are what scikit-learn calls them

from collections.abc import Sequence
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import Bounds
from colonnade.optim.solvers.design import dense_design
from colonnade.optim.solvers.fitting import Table, scaled_label, symmetric
from colonnade.optim.solvers.sparse import sparse_design


def check_declared(**bounds: Any) -> None:
    """Raise `ValueError`, naming all that are missing, unless every pair of bounds is given.

    Privacy: bounds are public knowledge. There is no default, for one taken from the data would
    tell of its most extreme rows.
    """
    missing = [name for name, pair in bounds.items() if pair is None]
    if missing:
        arrays = ", for bounds also of arrays with one entry for each feature,"
        raise ValueError(
            f"{' and '.join(missing)} must be declared: a pair (low, high) of numbers"
            f"{arrays if 'bounds' in missing else ','} from public knowledge and not from the data"
        )


def read_bounds(bounds: Any, n_features: int, *, name: str = "bounds") -> tuple[Bounds, ...]:
    """Return a pair ``(low, high)`` of numbers or arrays as bounds, one for each feature."""
    try:
        low, high = bounds
        lows = np.broadcast_to(np.asarray(low, np.float64), (n_features,))
        highs = np.broadcast_to(np.asarray(high, np.float64), (n_features,))
    except (TypeError, ValueError):
        arrays = f" or of arrays of {n_features} entries" if name == "bounds" else ""
        raise ValueError(f"{name} must be a pair (low, high) of numbers{arrays}") from None
    try:
        return tuple(Bounds(float(a), float(b)) for a, b in zip(lows, highs, strict=True))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def make_table(
    X: Any,
    y: FloatArray,
    bounds: Sequence[Bounds],
    *,
    label_bounds: Bounds | None,
    intercept: bool,
    row_wise: bool = False,
) -> Table:
    """Quantise a dense array or a sparse matrix, and its label.

    Without an intercept, and for a sparse matrix, bounds are widened to be symmetric about zero:
    zero must stay zero.
    """
    sparse = hasattr(X, "tocsc")
    if sparse or not intercept:
        bounds = symmetric(bounds)
    if label_bounds is not None and not intercept:
        (label_bounds,) = symmetric([label_bounds])
    make = sparse_design if sparse else dense_design
    design = make(X, bounds, intercept=intercept, row_wise=row_wise)
    label = y if label_bounds is None else scaled_label(y, label_bounds)
    return Table(design, tuple(bounds), label, label_bounds, intercept)
