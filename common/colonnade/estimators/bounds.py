"""Declared bounds as users write them: numbers, arrays, or anything that names the features.

Names are matched by name and never by place: bounds that are given for ``age`` go to the column
``age`` wherever it stands, and a name without a partner is an error.
"""

# ruff: noqa: N803 - X is what scikit-learn calls it

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import Bounds

Declared: TypeAlias = Any
"""What `read_bounds` reads; pandas, which may be a part of it, is not needed."""

_LOW, _HIGH = "low", "high"
_MAX_NAMES = 5


def check_declared(**bounds: Any) -> None:
    """Raise `ValueError`, naming all that are missing, unless every pair of bounds is given.

    Privacy: bounds are public knowledge. There is no default, for one taken from the data would
    tell of its most extreme rows.

    Examples
    --------
    >>> check_declared(bounds=(0.0, 1.0))
    >>> check_declared(y_bounds=None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: y_bounds must be declared: a pair (low, high) of numbers, from public knowledge...
    """
    missing = [name for name, pair in bounds.items() if pair is None]
    if missing:
        arrays = ", for bounds also of arrays with one entry for each feature,"
        raise ValueError(
            f"{' and '.join(missing)} must be declared: a pair (low, high) of numbers"
            f"{arrays if 'bounds' in missing else ','} from public knowledge and not from the data"
        )


def read_bounds(
    bounds: Any, n_features: int, *, names: Sequence[str] | None = None, name: str = "bounds"
) -> tuple[Bounds, ...]:
    """Return bounds, one for each feature.

    Parameters
    ----------
    bounds
        A pair ``(low, high)``, each a number, an array, or a pandas Series or a dict by feature; a
        dict of such pairs of numbers by feature; or a pandas DataFrame with a row for each
        feature and the columns ``low`` and ``high``, or the other way round.
    names
        The features' names, in order; None if they have none.

    Examples
    --------
    >>> read_bounds({"dose": (0, 5), "age": (0, 120)}, 2, names=["age", "dose"])
    (Bounds(low=0.0, high=120.0), Bounds(low=0.0, high=5.0))
    >>> read_bounds({"dose": (0, 5)}, 2, names=["age", "dose"])
    Traceback (most recent call last):
    ValueError: bounds: none for 'age'
    """
    try:
        low, high = _pair(bounds)
    except (TypeError, ValueError):
        arrays = f" or of arrays of {n_features} entries" if name == "bounds" else ""
        arrays += ", or a dict of such a pair for each feature" if name == "bounds" else ""
        raise ValueError(f"{name} must be a pair (low, high) of numbers{arrays}") from None
    together = isinstance(bounds, Mapping) or hasattr(bounds, "columns")
    lows = _side(low, n_features, names, where=f"{name}: {_LOW}", all_of=name if together else None)
    highs = _side(high, n_features, names, where=f"{name}: {_HIGH}")
    called = range(n_features) if names is None else names
    found = []
    for feature, first, last in zip(called, lows.tolist(), highs.tolist(), strict=True):
        try:
            found.append(Bounds(first, last))
        except ValueError as error:
            where = f" of feature {feature!r}" if n_features > 1 else ""
            raise ValueError(f"{name}{where}: {error}") from None
    return tuple(found)


def clip_to(X: Any, low: FloatArray, high: FloatArray) -> Any:
    """Return the features of all rows, clipped to their bounds as a fit clips them.

    A sparse matrix stays one: its entries that are not stored are zeros, which the bounds of a fit
    on a sparse matrix include. Where they do not, because the fit was on an array, it is made one.

    Examples
    --------
    >>> clip_to(np.array([[9.0, -9.0]]), np.array([0.0, -1.0]), np.array([1.0, 1.0]))
    array([[ 1., -1.]])
    """
    if not hasattr(X, "tocsr"):
        return np.clip(X, low, high)
    if (low > 0.0).any() or (high < 0.0).any():
        return np.clip(X.toarray(), low, high)
    clipped = X.tocsr(copy=True)
    clipped.sum_duplicates()
    clipped.data = np.clip(clipped.data, low[clipped.indices], high[clipped.indices])
    return clipped


def _pair(bounds: Any) -> tuple[Any, Any]:
    """Return what stands for all low ends and for all high ends."""
    if hasattr(bounds, "columns"):
        if sorted(map(str, getattr(bounds, "index", ()))) == [_HIGH, _LOW]:
            bounds = bounds.T  # a column a feature
        if sorted(map(str, bounds.columns)) != [_HIGH, _LOW] or not hasattr(bounds, "index"):
            raise ValueError("a table of bounds has the columns low and high, and a row a feature")
        return bounds[_LOW], bounds[_HIGH]
    if isinstance(bounds, Mapping):
        pairs = {label: tuple(pair) for label, pair in bounds.items()}
        lows, highs = ({label: pair[end] for label, pair in pairs.items()} for end in (0, 1))
        if any(len(pair) != 2 for pair in pairs.values()):
            raise ValueError("a dict of bounds has a pair for each feature")
        return lows, highs
    if _labels(bounds) is not None:  # a Series of two features' bounds would pass for a pair
        raise TypeError("one Series is no pair of bounds")
    low, high = bounds
    return low, high


def _side(
    values: Any,
    n_features: int,
    names: Sequence[str] | None,
    *,
    where: str,
    all_of: str | None = None,
) -> FloatArray:
    """Return one end of all bounds, in the order of the features.

    ``all_of`` is what both ends stand in, if names that are wrong are wrong for both.
    """
    labels = _labels(values)
    try:
        if labels is None:
            return np.broadcast_to(np.asarray(values, np.float64), (n_features,))
        numbers = [values[label] for label in labels] if isinstance(values, Mapping) else values
        given = np.asarray(numbers, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{where} must be a number, or {n_features} of them") from None
    return given[_places(labels, n_features, names, where=all_of or where)]


def _labels(values: Any) -> list[Any] | None:
    """Return how a Series or a dict calls its entries; None for what has no names."""
    if isinstance(values, Mapping):
        return list(values)
    index = getattr(values, "index", None)  # of a list it is a method
    return None if index is None or callable(index) else list(index)


def _places(
    labels: list[Any], n_features: int, names: Sequence[str] | None, *, where: str
) -> list[int]:
    """Return where each feature stands among the labels."""
    wanted: Sequence[Any] = range(n_features) if names is None else names
    found = {label: place for place, label in enumerate(labels)}
    if len(found) < len(labels):
        raise ValueError(f"{where}: a feature is named twice")
    missing = [label for label in wanted if label not in found]
    unknown = [label for label in labels if label not in set(wanted)]
    if missing or unknown:
        told = [f"none for {_some(missing)}"] if missing else []
        told += [f"{_some(unknown)} {'is' if len(unknown) == 1 else 'are'} no feature"] * (
            len(unknown) > 0
        )
        hint = "; the features have no names: pass a DataFrame, or arrays" if names is None else ""
        raise ValueError(f"{where}: {'; '.join(told)}{hint}")
    return [found[label] for label in wanted]


def _some(labels: Sequence[Any]) -> str:
    rest = f" and {len(labels) - _MAX_NAMES} more" if len(labels) > _MAX_NAMES else ""
    return ", ".join(repr(label) for label in labels[:_MAX_NAMES]) + rest
