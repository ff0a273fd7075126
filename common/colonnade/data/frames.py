"""Columns of a table by name, whatever library holds it: pandas, Polars, Arrow, or a mapping.

Anything that offers the Arrow C stream interface (``__arrow_c_stream__``) can be read; neither
pandas nor pyarrow is needed for it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray
from colonnade.core.errors import BadInput

Frame: TypeAlias = Any  # a pandas or Polars frame, an Arrow table or stream, a mapping of arrays


def is_frame(value: object) -> bool:
    """Return whether ``value`` is a table with named columns.

    Examples
    --------
    >>> is_frame({"age": [40, 50]}), is_frame([40, 50])
    (True, False)
    """
    readable = hasattr(value, "__arrow_c_stream__") or hasattr(value, "fetchnumpy")
    return isinstance(value, Mapping) or is_pandas(value) or readable


def is_pandas(value: object) -> bool:
    """Return whether ``value`` is a data frame of pandas, without importing pandas."""
    kind = type(value)
    return kind.__module__.split(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def columns_of(frame: Frame, names: Collection[str] | None = None) -> dict[str, AnyArray]:
    """Return the columns of a table by name; what is missing is NaN, among texts None.

    Parameters
    ----------
    names
        Read only these, and those of them that there are; by default all.

    Examples
    --------
    >>> columns_of({"age": [40, 50], "sex": ["f", "m"]}, names=["age"])
    {'age': array([40, 50])}
    """
    if isinstance(frame, Mapping):
        found = {name: frame[name] for name in frame if names is None or name in names}
    else:
        found = _through_duckdb(frame, names)
    return {name: _plain(values) for name, values in found.items()}


def tabulated(
    frame: Frame, names: Collection[str], n_rows: int | None = None
) -> tuple[dict[str, AnyArray], int]:
    """Return the columns of a table that are in ``names``, and the number of rows.

    ``n_rows`` is needed if the table has none of them and does not know its length.

    Examples
    --------
    >>> tabulated({"age": [40, 50]}, ["age", "iron"])
    ({'age': array([40, 50])}, 2)
    """
    columns = columns_of(frame, names)
    lengths = {len(values) for values in columns.values()}
    if n_rows is not None:
        lengths.add(n_rows)
    elif not lengths and not isinstance(frame, Mapping) and hasattr(frame, "__len__"):
        lengths.add(len(frame))
    if len(lengths) != 1:
        raise ValueError("columns must have one length, which n_rows gives if there are none")
    return columns, lengths.pop()


def numbers(values: AnyArray, *, what: str) -> FloatArray:
    """Return a column as floats, NaN for what is missing.

    Examples
    --------
    >>> numbers(np.array([1, 2]), what="column 'age'")
    array([1., 2.])
    """
    if values.dtype.kind in "biufOU":  # dates would be numbers, too, of no known unit
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            pass
    raise BadInput(f"{what} holds values that are no numbers")


def as_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return columns as a pandas frame, or as they are where pandas is not installed."""
    try:
        import pandas as pd  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError:
        return dict(columns)
    return pd.DataFrame(columns)


def open_frame(connection: Any, frame: Frame) -> Any:
    """Return a relation of DuckDB over a table that is no mapping."""
    if is_pandas(frame):
        if not frame.columns.is_unique or not all(isinstance(each, str) for each in frame.columns):
            raise BadInput("the columns of a data frame need different names, which are texts")
        return connection.from_df(frame.reset_index(drop=True))
    if hasattr(frame, "fetchnumpy"):  # a relation already
        return frame
    if hasattr(frame, "__arrow_c_stream__"):
        return connection.from_arrow(frame)
    raise BadInput(
        f"a {type(frame).__name__} has no named columns; give a data frame, an Arrow table or a "
        "mapping from names to arrays"
    )


def _through_duckdb(frame: Frame, names: Collection[str] | None) -> dict[str, AnyArray]:
    import duckdb  # noqa: PLC0415 (a coordinator reads no tables and has none)

    with duckdb.connect() as connection:
        relation = open_frame(connection, frame)
        kinds = dict(zip(relation.columns, relation.types, strict=True))
        picks = [_pick(name, kinds[name]) for name in kinds if names is None or name in names]
        found: dict[str, AnyArray] = {}
        if picks:
            found = relation.project(", ".join(picks)).fetchnumpy()
        return found


def _pick(name: str, kind: Any) -> str:
    """Return SQL for a column; categories as texts, whose missing values are known."""
    quoted = '"{}"'.format(name.replace('"', '""'))
    return f"CAST({quoted} AS VARCHAR) AS {quoted}" if kind.id == "enum" else quoted


def _plain(values: Any) -> AnyArray:
    """Return an array without a mask."""
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    mask = np.ma.getmaskarray(values)
    if values.dtype.kind in "biuf":
        return np.where(mask, np.nan, values.data)
    plain: AnyArray = values.data.astype(object)
    plain[mask] = None
    return plain
