"""A federation from one file: its columns are given to organizations, as named or in order.

For simulations only: whoever has the whole file needs no federation. Without a schema the bounds
are taken from the file, rounded outward to powers of two, which a real party must not do.
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.core.text import listed
from colonnade.data.schema import Schema
from colonnade.methods.problem import Loss
from colonnade.party.data.sources import is_number
from colonnade.pki.identity import check_part
from colonnade.simulate.federation import FOLDERS, Column, Site

Values = NDArray[Any]
_LEAST_ROWS = 10
_MAX_NAME = 200  # as in a schema
_TYPES = ["BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR"]  # no dates: "inf" is one to DuckDB


@dataclass(frozen=True, slots=True)
class FileTable:
    """The numeric columns of a file."""

    features: tuple[Column, ...]
    label: Column
    skipped: tuple[str, ...]  # columns that hold no numbers
    clients: IntArray | None = None  # whose each row is, numbered from 0

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return len(self.label.values)


def read_table(
    path: Path,
    target: str,
    *,
    loss: Loss,
    schema: Schema | None = None,
    client_column: str | None = None,
) -> FileTable:
    """Read a CSV (plain or gzip) or Parquet file; ``client_column`` says whose each row is."""
    found = _read(path)
    clients = None if client_column is None else _clients(path, found, client_column)
    columns, skipped = _numbers(found)
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
                f"{path}: column {name!r} has infinite or huge values; declare bounds in a schema"
            ) from None

    features = tuple(column(name, values) for name, values in columns.items())
    return FileTable(features, column(target, label), tuple(skipped), clients)


def _clients(path: Path, found: dict[str, Values], name: str) -> IntArray:
    """Take the column that says whose each row is, and number its values."""
    if name not in found:
        raise BadInput(f"{path} has no column {name!r} of clients; it has {listed(tuple(found))}")
    values = np.ma.asarray(found.pop(name))
    if np.ma.getmaskarray(values).any() or any(each != each for each in values.tolist()):
        raise BadInput(f"{path}: the column of clients {name!r} has missing values")
    return np.unique(values.astype(str), return_inverse=True)[1].astype(np.int64)


def _there(columns: Collection[str], skipped: Sequence[str]) -> str:
    """Say which columns there are, unless they are a first row that nobody named."""
    if any(is_number(name) for name in (*columns, *skipped)):
        return "its first line has numbers, so add a header line that names the columns"
    texts = f", and without numbers {listed(skipped)}" if skipped else ""
    return f"it has {listed(tuple(columns)) or 'none'}{texts}"


def deal_columns(table: FileTable, parties: Sequence[str]) -> dict[str, list[str]]:
    """Deal the columns out in order, equally many to each party."""
    names = [column.name for column in table.features]
    if len(names) < len(parties):
        raise BadInput(f"{len(names)} columns cannot be split over {len(parties)} parties")
    cuts = [round(k * len(names) / len(parties)) for k in range(len(parties) + 1)]
    pairs = zip(parties, itertools.pairwise(cuts), strict=True)
    return {party: names[first:last] for party, (first, last) in pairs}


def sites_from(
    table: FileTable, parties: Mapping[str, Sequence[str]], *, owner: str | None
) -> list[Site]:
    """Give each party the columns named for it; ``owner`` alone has the label, if given."""
    known, given = {column.name: column for column in table.features}, set[str]()
    sites = []
    for party, names in parties.items():
        _check_party(party, names)
        for name in names:
            if name == table.label.name:
                raise BadInput(f"party {party}: {name!r} is the label; a label owner alone has it")
            if name not in known:
                there = _there(tuple(known), table.skipped)
                raise BadInput(f"party {party}: there is no numeric column {name!r}; {there}")
            if name in given:
                raise BadInput(f"party {party}: column {name!r} is named more than once")
            given.add(name)
        label = table.label if owner in (None, party) else None
        sites.append(Site(party, [known[name] for name in names], label))
    return sites


def _check_party(party: str, columns: Sequence[str]) -> None:
    check_part("name", party)  # as its certificate will have it
    if party in FOLDERS:
        raise BadInput(f"a simulated party cannot be called {party}; choose another name")
    if not columns:
        raise BadInput(f"party {party} has no column; name at least one")


def outward(values: FloatArray) -> Bounds:
    """Return bounds that a person might have declared: powers of two around the values."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    size = max(abs(low), abs(high))
    if size == 0.0:
        return Bounds(-1.0, 1.0)
    reach = 2.0 ** math.ceil(math.log2(size))  # OverflowError beyond what a number can hold
    return Bounds(-reach if low < 0 else 0.0, reach if high > 0 else 0.0)


def _read(path: Path) -> dict[str, Values]:
    if not path.exists():
        raise BadInput(f"{path}: no such file")
    try:
        with duckdb.connect() as connection:
            if ".parquet" in path.suffixes:
                relation = connection.read_parquet(str(path))
            else:
                relation = connection.read_csv(str(path), auto_type_candidates=_TYPES)
            return dict(relation.fetchnumpy())
    except duckdb.Error:
        raise BadInput(f"{path}: cannot be read as CSV or Parquet") from None


def _numbers(found: Mapping[str, Values]) -> tuple[dict[str, FloatArray], list[str]]:
    """Return the columns with numbers, and the names of the others."""
    columns, skipped = {}, []
    for name, values in found.items():
        if np.issubdtype(values.dtype, np.number) or values.dtype == np.bool_:
            filled = np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan)
            columns[name] = np.asarray(filled, np.float64)
        if name not in columns or np.isnan(columns[name]).all():
            columns.pop(name, None)
            skipped.append(name)
    return columns, skipped
