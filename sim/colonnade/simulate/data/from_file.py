"""A federation from one file: its columns are given to organizations, as named or in order.

For simulations only: whoever has the whole file needs no federation. Without a schema the bounds
and levels are taken from the file, the former rounded outward to powers of two, which a real party
must not do.
"""

import itertools
import math
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray, IntArray
from colonnade.core.errors import BadIdentity, BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.core.text import listed
from colonnade.data.columns import Column as Declared
from colonnade.data.encoding import DEFAULT_MISSING
from colonnade.data.kinds import NUMBER, Category, Number, Ordinal
from colonnade.data.schema import Schema
from colonnade.methods.problem import Loss
from colonnade.party.data.reading.connection import connect, one_line
from colonnade.party.data.reading.sources import FileSource, is_number, open_source
from colonnade.party.data.staging import stage, staged_texts
from colonnade.pki.identity import check_part
from colonnade.simulate.federation import FOLDERS
from colonnade.simulate.sites import Site, SiteColumn

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

    features: tuple[SiteColumn, ...]
    label: SiteColumn
    skipped: tuple[str, ...]  # columns that hold neither numbers nor levels
    clients: IntArray | None = None  # whose each row is, numbered from 0
    levelled: tuple[str, ...] = ()  # columns whose levels were taken from the file

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
    columns = {} if schema is None else _declared(path, schema)
    clients, skipped, levelled = None, list[str](), list[str]()
    if target not in columns or client_column is not None:
        found = _read(path)
        if not found or min(map(len, found.values())) == 0:
            raise BadInput(f"{path} has no rows; a simulation needs {_LEAST_ROWS}")
        if client_column is not None:
            clients = _clients(path, found, client_column)
        if schema is None:
            columns, skipped, levelled = _usable(path, found)
        elif target not in columns and target in found:  # of which alone the file is asked
            columns |= _usable(path, {target: found[target]})[0]
    if target not in columns:
        raise BadInput(f"{path} has no column {target!r} to learn; {_there(columns, skipped)}")
    label = _checked_label(path, columns.pop(target), loss)
    if not columns:
        raise BadInput(f"{path} has no usable columns besides {target!r}")
    taken = tuple(name for name in levelled if name != target)
    return FileTable(tuple(columns.values()), label, tuple(skipped), clients, taken)


def _checked_label(path: Path, label: SiteColumn, loss: Loss) -> SiteColumn:
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
        label = SiteColumn(target, _UNIT, values, label.texts, two)
    if values.min() == values.max():
        raise BadInput(f"{path}: the label {target!r} has one value; there is nothing to learn")
    if loss is Loss.LOGISTIC and label.texts is None:
        found = np.unique(values)
        if found.size != 2:
            raise BadInput(f"{path}: {target!r} has {found.size} values; logistic needs two")
        return SiteColumn(target, _UNIT, (values == found[1]).astype(np.float64))
    return label


def _declared(path: Path, schema: Schema) -> dict[str, SiteColumn]:
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
            found[name] = SiteColumn(declared.name, declared.bounds, values, texts, whole)
    return found


def _clients(path: Path, found: dict[str, AnyArray], name: str) -> IntArray:
    """Take the column that says whose each row is, and number its values."""
    if name not in found:
        raise BadInput(f"{path} has no column {name!r} of clients; it has {listed(tuple(found))}")
    values = np.ma.asarray(found.pop(name))
    if np.ma.getmaskarray(values).any() or any(each != each for each in values.tolist()):
        raise BadInput(f"{path}: the column of clients {name!r} has missing values")
    return np.unique(values.astype(str), return_inverse=True)[1].astype(np.int64)


def _there(columns: Collection[str], skipped: Sequence[str]) -> str:
    """Describe which columns there are, unless they are a first row that nobody named."""
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
    """Assign each party the columns named for it; ``owner`` alone has the label, if given."""
    known, given = {column.name: column for column in table.features}, set[str]()
    sites = []
    for party, names in parties.items():
        _check_party(party, names)
        for name in names:
            if name == table.label.name:
                raise BadInput(f"party {party}: {name!r} is the label; a label owner alone has it")
            if name not in known:
                there = _there(tuple(known), table.skipped)
                raise BadInput(f"party {party}: there is no column {name!r}; {there}")
            if name in given:
                raise BadInput(f"party {party}: column {name!r} is named more than once")
            given.add(name)
        label = table.label if owner in (None, party) else None
        sites.append(Site(party, [known[name] for name in names], label))
    return sites


def _check_party(party: str, columns: Sequence[str]) -> None:
    try:
        check_part("name", party)  # as its certificate will have it
    except BadIdentity as error:
        raise BadInput(f"party {party}: {error}") from None
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


def _read(path: Path) -> dict[str, AnyArray]:
    if not path.exists():
        raise BadInput(f"{path}: no such file")
    if path.is_dir():
        raise BadInput(f"{path}: is a folder; name a CSV or Parquet file")
    try:
        with duckdb.connect() as connection:
            if ".parquet" in path.suffixes:
                relation = connection.read_parquet(str(path))
            else:
                relation = connection.read_csv(str(path), auto_type_candidates=_TYPES)
            return dict(relation.fetchnumpy())
    except duckdb.Error:
        raise BadInput(f"{path}: cannot be read as CSV or Parquet") from None


def _usable(
    path: Path, found: Mapping[str, AnyArray]
) -> tuple[dict[str, SiteColumn], list[str], list[str]]:
    """Return the columns, the names of those left out, and of those whose levels were taken."""
    columns: dict[str, SiteColumn] = {}
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


def _number(path: Path, name: str, values: FloatArray) -> SiteColumn:
    if not 1 <= len(name) <= _MAX_NAME or not name.isprintable():
        raise BadInput(f"{path}: a column's name has 1 to {_MAX_NAME} printable characters")
    try:
        return SiteColumn(name, outward(values), values)
    except OverflowError:
        raise BadInput(
            f"{path}: column {name!r} has infinite or huge values; declare bounds in a schema"
        ) from None


def _levelled(name: str, values: AnyArray) -> SiteColumn | None:
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
    return SiteColumn(name, _UNIT, declared.encoding().read(texts, texts.size), texts, declared)
