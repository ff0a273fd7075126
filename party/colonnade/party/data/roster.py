"""The roster that staged rows are matched to, and how ids are written in SQL."""

from itertools import islice
from pathlib import Path

import duckdb
from duckdb.func import FunctionNullHandling

from colonnade.core.errors import BadInput
from colonnade.methods.alignment.normalise import IdColumn
from colonnade.party.data.reading.sources import MAIN, Relation
from colonnade.party.data.reading.values import (
    FLOATS,
    NUMBERS,
    TEXTS,
)

ROSTER = f"{MAIN}.roster"
_CHUNK_LINES = 50_000
WRITTEN = "colonnade_written"
# Ids of clients: of whole numbers and texts under every rule, of other numbers if they are folded.
_CLIENT_IDS = (NUMBERS | TEXTS | {"UUID"}) - {"BOOLEAN", "DECIMAL"}
_FOLDED_IDS = {"DECIMAL", "DOUBLE"}


def written(person: str, rule: IdColumn | None) -> str:
    """Return an id as a rule writes it, or as it is; empty if the rule leaves nothing."""
    return person if rule is None else rule.apply(person)


def load_roster(
    database: duckdb.DuckDBPyConnection, path: Path, rule: IdColumn | None = None
) -> int:
    """Read the list of people, one id a line, and return its length.

    With a rule, ``WRITTEN`` becomes the function that writes ids of the source by it, and makes
    NULL of those of which it leaves nothing.
    """
    if rule is not None:
        database.create_function(
            WRITTEN,
            lambda raw: None if raw is None else rule.apply(raw) or None,
            ["varchar"],
            "varchar",
            null_handling=FunctionNullHandling.SPECIAL,
        )
    database.execute(f"CREATE TABLE {ROSTER} (position BIGINT, id VARCHAR)")
    insert = f"INSERT INTO {ROSTER} SELECT unnest(?::BIGINT[]), unnest(?::VARCHAR[])"
    n_lines = 0
    try:
        with path.open(encoding="utf-8-sig") as file:
            while lines := list(islice(file, _CHUNK_LINES)):
                ids = [written(line.removesuffix("\n"), rule) for line in lines]
                positions = range(n_lines, n_lines + len(ids))
                for position, person in zip(positions, ids, strict=True):
                    if not person.strip():
                        fault = "is empty" if rule is None else "has no id under the rule"
                        raise BadInput(f"{path}: line {position + 1} {fault}; remove it")
                database.execute(insert, [list(positions), ids])
                n_lines += len(ids)
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8 text; convert the roster to UTF-8") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot read the roster: {error.strerror}") from None
    if not n_lines:
        raise BadInput(f"{path}: the roster is empty; write one id a line")
    n_repeats, line = count_repeats(database, ROSTER, row="position + 1")
    if n_repeats:
        raise BadInput(f"{path}: {n_repeats} lines repeat an earlier id, the first is line {line}")
    return n_lines


def id_sql(relation: Relation, name: str) -> str:
    """Return SQL for the text of an id."""
    position = relation.find(name)
    if relation.types[position] in FLOATS:  # its text would be "7.0", which is on no roster
        fix = "convert it to text in a query"
        raise BadInput(f"{relation.origin}: id column {name!r} holds floating-point values; {fix}")
    return f"CAST(c{position} AS VARCHAR)"


def client_sql(relation: Relation, name: str, rule: str) -> str:
    """Return the SQL of a client's id as text; refuse types that have many spellings."""
    position = relation.find(name)
    kind = relation.types[position].partition("(")[0]
    if kind not in _CLIENT_IDS | (set() if rule == "exact" else _FOLDED_IDS):
        raise BadInput(
            f"{relation.origin}: client column {name!r} holds {kind} values, which are written in "
            "many ways; convert it to text in a query"
        )
    text = f"CAST(c{position} AS VARCHAR)"
    return f"CASE WHEN isfinite(c{position}) THEN {text} END" if kind == "DOUBLE" else text


def count_repeats(database: duckdb.DuckDBPyConnection, table: str, *, row: str) -> tuple[int, int]:
    """Return how many rows repeat an earlier id, and the number of the first such row."""
    nth = f"row_number() OVER (PARTITION BY id ORDER BY {row})"
    numbered = f"SELECT {row} AS number, {nth} AS nth FROM {table}"  # noqa: S608
    sql = f"SELECT count(*), min(number) FROM ({numbered}) WHERE nth > 1"  # noqa: S608
    return pair(database.execute(sql).fetchone())


def pair(fetched: tuple[int | None, ...] | None) -> tuple[int, int]:
    """Return two numbers of a fetched row, 0 where there is none."""
    first, second = fetched or (0, 0)
    return first or 0, second or 0
