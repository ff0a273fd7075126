"""A first draft of a schema, from a file's header and types, for a person to complete.

What a schema says is public, so nothing of the rows belongs in it that is not known without them.
A draft has no bounds. Types and levels are taken from rows, marked so, and have to be reviewed; a
level that few rows have is left out.
"""

import csv
import io
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from colonnade.core.errors import BadInput
from colonnade.data.dialect import PLAIN, Dialect
from colonnade.data.encoding import DEFAULT_MISSING
from colonnade.data.kinds import NO, YES
from colonnade.party.data.reading.connection import connect, one_line
from colonnade.party.data.reading.draft import LEAST_ROWS, Drafted, schema_text, yes_and_no
from colonnade.party.data.reading.sources import FileSource, Relation, is_number, open_source
from colonnade.party.data.reading.transcode import first_text
from colonnade.party.data.reading.values import DATES, FLOATS, NUMBERS, plain_sql

MAX_LEVELS = 50
"""Different texts of a column up to which it is drafted as a category."""

_UNSURE = (
    'Review: every "%s" in a number has three digits behind it. Is it between thousands? Set it as '
    "thousands, and decimal to the other one."
)
_NAMES_A_PERSON = re.compile(
    r"(id|person|patient|member|customer)([ _-]?(id|no|nr|number|key|code))?\.?", re.IGNORECASE
)
_FORMATS = ("", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d")
_SHORT = ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y")
_CENTURY = "years of two digits: 69 to 99 are read as 19.., 00 to 68 as 20..; is that right?"
_SOURCE = "colonnade_staging.main.drafted"


@dataclass(frozen=True, slots=True)
class SchemaDraft:
    """A draft, the columns that tell people apart as given or guessed, and those of the file."""

    text: str
    ids: tuple[str, ...]
    names: tuple[str, ...]


def suggest(
    path: Path,
    *,
    dialect: Dialect | None = None,
    ids: Sequence[str] = (),
    label: str | None = None,
) -> SchemaDraft:
    """Return a draft of the schema of a CSV or Parquet file; a dialect not given is guessed.

    Parameters
    ----------
    ids
        Columns that tell people apart, which are no features.
    label
        The column that is the label.
    """
    dialect, unsure = dialect or guess_dialect(path), False
    with (
        tempfile.TemporaryDirectory(prefix="colonnade-suggest-") as folder,  # mode 0700
        one_line(str(path)),
        connect(Path(folder), n_columns=100) as database,
    ):
        relation = open_source(database, FileSource(path), folder=Path(folder), dialect=dialect)
        if len({*relation.names}) != len(relation.names):
            twice = next(name for name in relation.names if relation.names.count(name) > 1)
            relation.find(twice)  # says how to tell them apart
        for name in (*ids, *([] if label is None else [label])):
            relation.find(name)
        if relation.is_csv and (dialect.decimal, dialect.thousands) == (".", ""):
            dialect, unsure = _marks(database, relation)
            relation = replace(relation, dialect=dialect)
        if relation.is_csv and any(map(is_number, relation.names)):
            raise BadInput(f"{path}: {relation.list_names()}")
        columns = [_draft(database, relation, place) for place in range(len(relation.names))]
    if not any(column.type for column in columns):
        raise BadInput(
            f"{path}: no column holds numbers, dates, yes and no, or levels; is line 1 its header?"
        )
    known = tuple(ids) or tuple(filter(_NAMES_A_PERSON.fullmatch, relation.names))[:1]
    text = schema_text(path, columns, dialect if relation.is_csv else PLAIN, known, label)
    if unsure:
        text = text.replace("\n\n", f"\n\n# {_UNSURE % dialect.decimal}\n", 1)
    return SchemaDraft(text, known, tuple(relation.names))


def guess_dialect(path: Path) -> Dialect:
    """Guess a file's encoding and delimiter, and whether names repeat, from its beginning."""
    text, encoding = first_text(path)
    line = next(iter(io.StringIO(text, newline="")), "")
    headers = {each: next(csv.reader([line], delimiter=each), []) for each in ",;\t|"}
    delimiter = max(headers, key=lambda each: len(headers[each]))
    names = [name.strip() for name in headers[delimiter]]
    duplicates = "number" if len({*names}) < len(names) else PLAIN.duplicates
    return Dialect(delimiter=delimiter, encoding=encoding, duplicates=duplicates)


def _marks(database: duckdb.DuckDBPyConnection, relation: Relation) -> tuple[Dialect, bool]:
    """Return the dialect with the decimal mark of more cells, or with a mark between thousands.

    And whether all cells with the decimal mark could as well have it between thousands. A mark is
    one of thousands if all cells with it could be such numbers and some have it twice, or the other
    mark behind it.
    """
    dialect = relation.dialect
    counts = {mark: _cells(database, relation, f"[0-9]+[{mark}][0-9]+") for mark in ".,"}
    for mark, other in (".,", ",."):
        grouped = f"[0-9]{{1,3}}([{mark}][0-9]{{3}})+"
        fraction = f"[{other}][0-9]+"
        sure = f"[1-9][0-9]{{0,2}}([{mark}][0-9]{{3}}){{2,}}|{grouped}{fraction}"
        fits = _cells(database, relation, f"[1-9][0-9]{{0,2}}[{mark}][0-9]{{3}}")
        if fits == counts[mark] and _cells(database, relation, sure):
            return replace(dialect, decimal=other, thousands=mark), False
    found = "," if counts[","] > counts["."] else "."
    unsure = _cells(database, relation, f"[1-9][0-9]{{0,2}}[{found}][0-9]{{3}}") == counts[found]
    return replace(dialect, decimal=found), unsure and counts[found] > 0


def _cells(database: duckdb.DuckDBPyConnection, relation: Relation, form: str) -> int:
    """Return how many cells are numbers of a form."""
    pattern = f"'\\s*[+-]?({form})\\s*'"
    # Of a column without any value there is no count.
    count = "coalesce(count_if(regexp_full_match(c{}, {})), 0)".format
    counts = (count(place, pattern) for place in range(len(relation.names)))
    return _one(database, relation, " + ".join(counts))


def _draft(database: duckdb.DuckDBPyConnection, relation: Relation, place: int) -> Drafted:
    name, held = relation.names[place], relation.types[place].partition("(")[0]
    if held == "BOOLEAN":
        return Drafted(name, "bool")
    if held in DATES:
        return Drafted(name, "date")
    if held in NUMBERS | FLOATS:
        return Drafted(name, "number")
    text = f"trim(CAST(c{place} AS VARCHAR))"
    there = f"({text} IS NOT NULL AND NOT list_contains($missing::VARCHAR[], {text}))"

    def share(test: str) -> bool:
        """Return whether all texts pass."""
        return _one(database, relation, f"count_if({there} AND NOT coalesce({test}, false))") == 0

    if _one(database, relation, f"count_if({there})") == 0:
        return Drafted(name, "", note="no value in any row")
    if share(f"TRY_CAST({plain_sql(text, relation.dialect)} AS DOUBLE) IS NOT NULL"):
        return Drafted(name, "number", note=_whole(database, relation, text, there))
    for form in (*_FORMATS, *_SHORT):
        year = "" if form in _SHORT else f"regexp_matches({text}, '[0-9]{{4}}') AND "
        if share(f"{year}try_strptime(left({text}, 10), '{form or '%Y-%m-%d'}') IS NOT NULL"):
            return Drafted(name, "date", format=form, note="" if year else _CENTURY)
    counts = _counts(database, relation, text, there)
    if len(counts) == 1 and not _one(database, relation, f"count_if(NOT {there})"):
        return Drafted(name, "", note="the same text in every row")
    if {level.casefold() for level in counts} <= {*YES, *NO}:
        return Drafted(name, "bool")
    if words := yes_and_no(counts):
        return Drafted(name, "bool", words=words)
    levels = tuple(sorted(level for level, count in counts.items() if count >= LEAST_ROWS))
    usable = all(level.isprintable() and len(level) <= 150 for level in levels)
    if len(counts) > MAX_LEVELS or not levels or not usable:
        return Drafted(name, "", note="texts that are no levels: too many, too rare or too long")
    return Drafted(name, "category", levels, len(counts) - len(levels))


def _whole(database: duckdb.DuckDBPyConnection, relation: Relation, text: str, there: str) -> str:
    few = _one(database, relation, f"count(DISTINCT CASE WHEN {there} THEN {text} END)")
    return "few different values: a category or an ordinal?" if few <= LEAST_ROWS else ""


def _counts(
    database: duckdb.DuckDBPyConnection, relation: Relation, text: str, there: str
) -> dict[str, int]:
    sql = (
        f"SELECT {text}, count(*) FROM {relation.sql} WHERE {there} GROUP BY 1 "  # noqa: S608
        f"ORDER BY 2 DESC LIMIT {MAX_LEVELS + 1}"
    )
    missing = {"missing": list(DEFAULT_MISSING)}
    return dict(database.execute(sql, {**relation.parameters, **missing}).fetchall())


def _one(database: duckdb.DuckDBPyConnection, relation: Relation, expression: str) -> int:
    parameters = dict(relation.parameters)
    if "$missing" in expression:
        parameters["missing"] = list(DEFAULT_MISSING)
    sql = f"SELECT {expression} FROM {relation.sql}"  # noqa: S608 (our own SQL)
    (count,) = database.execute(sql, parameters).fetchone() or (0,)
    return int(count or 0)


def check_new(path: Path) -> None:
    """Refuse to write over a file."""
    if path.exists():
        raise BadInput(f"{path}: exists; name a new file")
