"""A federation from one file: its columns are dealt out to organizations, in order.

For simulations only: whoever has the whole file needs no federation. Without a schema the bounds
are taken from the file, rounded outward to powers of two, which a real party must not do.
"""

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.core.text import listed
from colonnade.data.schema import Schema
from colonnade.methods.problem import Loss
from colonnade.party.data.sources import is_number
from colonnade.simulate.federation import Column, Site

_LEAST_ROWS = 10
_MAX_NAME = 200  # as in a schema
_TYPES = ["BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR"]  # no dates: "inf" is one to DuckDB


@dataclass(frozen=True, slots=True)
class FileTable:
    """The numeric columns of a file."""

    features: tuple[Column, ...]
    label: Column
    skipped: tuple[str, ...]  # columns that hold no numbers

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return len(self.label.values)


def read_table(path: Path, target: str, *, loss: Loss, schema: Schema | None = None) -> FileTable:
    """Read a CSV (plain or gzip) or Parquet file."""
    columns, skipped = _read(path)
    declared = {} if schema is None else {each.column: each.bounds for each in schema.columns}
    for name in (target, *declared):
        if name not in columns:
            raise BadInput(f"{path} has no numeric column {name!r}; {_there(columns, skipped)}")
    label = columns.pop(target)
    if len(label) < _LEAST_ROWS:
        raise BadInput(f"{path} has {len(label)} rows; a simulation needs {_LEAST_ROWS}")
    if np.isnan(label).any():
        raise BadInput(f"{path}: the label {target!r} has missing values")
    if label.min() == label.max():
        raise BadInput(f"{path}: the label {target!r} has one value; there is nothing to learn")
    if schema is not None:
        columns = {name: values for name, values in columns.items() if name in declared}
    if not columns:
        raise BadInput(f"{path} has no numeric columns besides {target!r}")
    if loss is Loss.LOGISTIC:
        values = np.unique(label)
        if values.size != 2:
            raise BadInput(f"{path}: {target!r} has {values.size} values; logistic needs two")
        label = (label == values[1]).astype(np.float64)
        declared[target] = Bounds(0.0, 1.0)

    def column(name: str, values: FloatArray) -> Column:
        if not 1 <= len(name) <= _MAX_NAME or not name.isprintable():
            raise BadInput(f"{path}: a column's name has 1 to {_MAX_NAME} printable characters")
        try:
            return Column(name, declared.get(name) or outward(values), values)
        except OverflowError:
            raise BadInput(
                f"{path}: column {name!r} has infinite or huge values; declare bounds (--schema)"
            ) from None

    features = tuple(column(name, values) for name, values in columns.items())
    return FileTable(features, column(target, label), tuple(skipped))


def _there(columns: Collection[str], skipped: Sequence[str]) -> str:
    """Say which columns there are, unless they are a first row that nobody named."""
    if any(is_number(name) for name in (*columns, *skipped)):
        return "its first line has numbers, so add a header line that names the columns"
    texts = f", and without numbers {listed(skipped)}" if skipped else ""
    return f"it has {listed(tuple(columns)) or 'none'}{texts}"


def sites_from(table: FileTable, parties: Sequence[str], *, owner: int | None) -> list[Site]:
    """Deal the columns out in order; ``owner`` alone has the label, if given."""
    if len(table.features) < len(parties):
        raise BadInput(f"{len(table.features)} columns cannot be split over {len(parties)} parties")
    cuts = [round(k * len(table.features) / len(parties)) for k in range(len(parties) + 1)]
    return [
        Site(party, table.features[first:last], table.label if owner in (None, k) else None)
        for k, (party, (first, last)) in enumerate(
            zip(parties, itertools.pairwise(cuts), strict=True)
        )
    ]


def outward(values: FloatArray) -> Bounds:
    """Return bounds that a person might have declared: powers of two around the values."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    size = max(abs(low), abs(high))
    if size == 0.0:
        return Bounds(-1.0, 1.0)
    reach = 2.0 ** math.ceil(math.log2(size))  # OverflowError beyond what a number can hold
    return Bounds(-reach if low < 0 else 0.0, reach if high > 0 else 0.0)


def _read(path: Path) -> tuple[dict[str, FloatArray], list[str]]:
    import duckdb

    if not path.exists():
        raise BadInput(f"{path}: no such file")
    try:
        with duckdb.connect() as connection:
            if ".parquet" in path.suffixes:
                relation = connection.read_parquet(str(path))
            else:
                relation = connection.read_csv(str(path), auto_type_candidates=_TYPES)
            found = relation.fetchnumpy()
    except duckdb.Error:
        raise BadInput(f"{path}: cannot be read as CSV or Parquet") from None
    columns, skipped = {}, []
    for name, values in found.items():
        if np.issubdtype(values.dtype, np.number) or values.dtype == np.bool_:
            filled = np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan)
            columns[name] = np.asarray(filled, np.float64)
        if name not in columns or np.isnan(columns[name]).all():
            columns.pop(name, None)
            skipped.append(name)
    return columns, skipped
