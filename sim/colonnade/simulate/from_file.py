"""A federation from one file: its columns are dealt out to organizations, in order.

For simulations only: whoever has the whole file needs no federation. Without a schema the bounds
and levels are taken from the file, the former rounded outward to powers of two, which a real party
must not do.
"""

import itertools
import math
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.core.text import listed
from colonnade.data.columns import Column as Declared
from colonnade.data.encoding import DEFAULT_MISSING, NUMBER, Category, Number, Ordinal
from colonnade.data.schema import Schema
from colonnade.methods.problem import Loss
from colonnade.party.data.sources import FileSource, connect, is_number, one_line, open_source
from colonnade.party.data.staging import stage, staged_texts
from colonnade.simulate.federation import Column, Site

MAX_LEVELS = 50
"""Different texts of a column up to which they are taken for levels."""

_LEAST_ROWS = 10
_MAX_NAME = 200  # as in a schema
_MAX_LEVEL = 150
_TYPES = ["BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR"]  # no dates: "inf" is one to DuckDB
_UNIT = Bounds(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class FileTable:
    """The columns of a file."""

    features: tuple[Column, ...]
    label: Column
    skipped: tuple[str, ...]  # columns that hold neither numbers nor levels
    levelled: tuple[str, ...]  # columns whose levels were taken from the file

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return len(self.label.values)


def read_table(path: Path, target: str, *, loss: Loss, schema: Schema | None = None) -> FileTable:
    """Read a CSV (plain or gzip) or Parquet file."""
    skipped: list[str] = []
    levelled: list[str] = []
    columns = {} if schema is None else _declared(path, schema)
    if target not in columns:
        read, skipped, levelled = _read(path)
        if schema is None:
            columns = read
        elif target in read:  # of which alone the file is asked
            columns[target] = read[target]
    if target not in columns:
        raise BadInput(f"{path} has no column {target!r} to learn; {_there(columns, skipped)}")
    label = _checked_label(path, columns.pop(target), loss)
    if not columns:
        raise BadInput(f"{path} has no usable columns besides {target!r}")
    if schema is not None:
        skipped, levelled = [], []
    taken = tuple(name for name in levelled if name != target)
    return FileTable(tuple(columns.values()), label, tuple(skipped), taken)


def _checked_label(path: Path, label: Column, loss: Loss) -> Column:
    values, target = label.values, label.name
    if len(values) < _LEAST_ROWS:
        raise BadInput(f"{path} has {len(values)} rows; a simulation needs {_LEAST_ROWS}")
    if np.isnan(values).any():
        raise BadInput(f"{path}: the label {target!r} has missing values")
    if isinstance(label.declared, Declared) and isinstance(label.declared.kind, Category):
        levels = label.declared.kind.levels
        if len(levels) != 2:
            raise BadInput(f"{path}: the label {target!r} has {len(levels)} levels; it needs two")
        two = Declared(target, target, _UNIT, 0.5, Ordinal(levels))
        label = Column(target, _UNIT, values, label.texts, two)
    if values.min() == values.max():
        raise BadInput(f"{path}: the label {target!r} has one value; there is nothing to learn")
    if loss is Loss.LOGISTIC and label.texts is None:
        found = np.unique(values)
        if found.size != 2:
            raise BadInput(f"{path}: {target!r} has {found.size} values; logistic needs two")
        return Column(target, _UNIT, (values == found[1]).astype(np.float64))
    return label


def _declared(path: Path, schema: Schema) -> dict[str, Column]:
    """Read the columns of a schema as a party would; the label is called as in the file."""
    plain = Schema(schema.features, schema.label, missing=schema.missing, dialect=schema.dialect)
    found = {}
    with (
        tempfile.TemporaryDirectory(prefix="colonnade-simulate-") as folder,  # mode 0700
        one_line(str(path)),
        connect(Path(folder), n_columns=len(plain.columns)) as database,
    ):
        source = FileSource(path)
        relation = open_source(database, source, folder=Path(folder), dialect=plain.dialect)
        staged = stage(database, relation, schema=plain)
        contents = zip(plain.columns, staged.columns(plain.encodings), strict=True)
        for place, (declared, values) in enumerate(contents):
            texts = None
            if not isinstance(declared.kind, Number):
                texts = staged_texts(database, place)
                texts[np.isnan(values)] = None  # whichever text said so
            whole = declared if declared.kind != NUMBER or declared.missing_indicator else None
            name = declared.column if declared is schema.label else declared.name
            found[name] = Column(declared.name, declared.bounds, values, texts, whole)
    return found


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


def _read(path: Path) -> tuple[dict[str, Column], list[str], list[str]]:
    """Read all columns; return them, those left out, and those whose levels were taken."""
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
    columns: dict[str, Column] = {}
    skipped, levelled = [], []
    for name, values in found.items():
        if np.issubdtype(values.dtype, np.number) or values.dtype == np.bool_:
            numbers = np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan)
            if not np.isnan(numbers).all():
                columns[name] = _number(path, name, np.asarray(numbers, np.float64))
        elif (made := _levelled(name, values)) is not None:
            columns[name] = made
            levelled.append(name)
        if name not in columns:
            skipped.append(name)
    return columns, skipped, levelled


def _number(path: Path, name: str, values: FloatArray) -> Column:
    if not 1 <= len(name) <= _MAX_NAME or not name.isprintable():
        raise BadInput(f"{path}: a column's name has 1 to {_MAX_NAME} printable characters")
    try:
        return Column(name, outward(values), values)
    except OverflowError:
        raise BadInput(
            f"{path}: column {name!r} has infinite or huge values; declare bounds (--schema)"
        ) from None


def _levelled(name: str, values: AnyArray) -> Column | None:
    """Return a category whose levels are the texts that there are, unless they are too many.

    The most frequent one is the baseline.
    """
    if values.dtype != object or not 1 <= len(name) <= _MAX_NAME or not name.isprintable():
        return None
    texts = np.array(
        [None if text is None else str(text).strip() for text in np.ma.asarray(values).tolist()],
        dtype=object,
    )
    texts[[text in DEFAULT_MISSING for text in texts]] = None
    counts: dict[str, int] = {}
    for text in texts[texts != None]:  # noqa: E711 (elementwise)
        counts[text] = counts.get(text, 0) + 1
    usable = all(text.isprintable() and len(text) <= _MAX_LEVEL for text in counts)
    if not 2 <= len(counts) <= MAX_LEVELS or not usable:
        return None
    kind = Category(tuple(sorted(counts)), baseline=max(counts, key=lambda text: counts[text]))
    declared = Declared(name, name, _UNIT, 0.0, kind)
    return Column(name, _UNIT, declared.encoding().read(texts, texts.size), texts, declared)
