"""The order that a table's rows follow: a roster that parties agreed on, or an alignment.

An order has a public name by which parties notice that theirs differ, before anything is paid for.
An alignment's is that of its specification. A roster's is a MAC of the ordered list under a key
that parties alone hold: who relays it, the coordinator, learns only whether two are equal.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import duckdb
import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.methods.alignment.normalise import IdColumn
from colonnade.party.data.reading.sources import MAIN, ROWS
from colonnade.party.data.roster import written

_KEY_BYTES = 16  # at least
_MAX_KEY_TEXT = 1024
_FETCH = 50_000
_KEPT, _SORTED = f"{MAIN}.kept", f"{MAIN}.sorted"
_HEADERS = {"id", "ids", "person", "person_id", "patient", "patient_id", "roster"}


class RowsById(Protocol):
    """An alignment's outcome at a party."""

    @property
    def name(self) -> str:
        """The alignment's name."""

    @property
    def n_rows(self) -> int:
        """Rows that jobs use."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The source's columns that ids were made from."""

    def row_of(self, texts: Sequence[str | None]) -> int | None:
        """Return the row of the person whose id columns have these texts; None for nobody's."""


@dataclass(frozen=True, slots=True)
class Roster:
    """A file of the agreed people, one id a line, and the key of its MAC, if there is one.

    Under a rule, ids are compared as the rule writes them, and so are two parties' rosters.
    """

    path: Path
    key: Path | None = None
    rule: IdColumn | None = None

    def name(self) -> str:
        """Return the public name of the order; empty without a key."""
        if self.key is None:
            return ""
        try:
            if not self.key.is_file():  # a pipe would be waited for
                raise ValueError("no file")
            with self.key.open(encoding="ascii") as file:
                key = bytes.fromhex(file.read(_MAX_KEY_TEXT).strip())
        except (OSError, ValueError):
            key = b""
        if len(key) < _KEY_BYTES:
            raise BadInput(
                f"{self.key}: holds no key; write at least {2 * _KEY_BYTES} hex digits and give "
                "the same file to every party, and to nobody else"
            )
        mac = hmac.new(key, b"colonnade roster v1\0", "sha256")
        with self.path.open(encoding="utf-8-sig") as file:
            for line in file:
                person = written(line.removesuffix("\n"), self.rule).encode()
                mac.update(len(person).to_bytes(4, "big") + person)
        return f"roster-{mac.hexdigest()}"

    def check_first(self, id_column: str, *, matched: bool) -> None:
        """Refuse a first line that is the header of a column, unless somebody has that id."""
        with self.path.open(encoding="utf-8-sig") as file:
            first = file.readline().strip().strip('"').casefold()
        if not matched and first in {*_HEADERS, id_column.casefold()}:
            raise BadInput(f"{self.path}: line 1 is a header, not an id; remove it")


def keep_aligned(database: duckdb.DuckDBPyConnection, order: RowsById) -> tuple[IntArray, int]:
    """Keep the staged rows of people who have a row, and return where each is staged.

    Also return how many rows were left out: of people without a row, and of those listed before.
    """
    texts = ", ".join(f"k{at}" for at in range(len(order.columns)))
    found = database.execute(f"SELECT rowid, {texts} FROM {ROWS} ORDER BY rowid")  # noqa: S608
    staged, n_staged = dict[int, int](), 0
    while rows := found.fetchmany(_FETCH):
        n_staged += len(rows)
        for at, *values in rows:
            if (row := order.row_of(values)) is not None:
                staged.setdefault(row, at)
    if not staged:
        raise BadInput("no row of a person whom the alignment lists; compare source and id columns")
    places = sorted(staged)
    database.execute(
        f"CREATE TABLE {_KEPT} AS "
        "SELECT unnest(?::BIGINT[]) AS staged_row, unnest(?::BIGINT[]) AS target",
        [[staged[row] for row in places], places],
    )
    database.execute(
        f"CREATE TABLE {_SORTED} AS SELECT r.*, target FROM {ROWS} r "  # noqa: S608
        f"JOIN {_KEPT} ON r.rowid = staged_row ORDER BY target"
    )
    database.execute(f"DROP TABLE {ROWS}")
    database.execute(f'ALTER TABLE {_SORTED} RENAME TO "rows"')
    index = np.full(order.n_rows, -1, dtype=np.int64)
    kept = database.execute(f"SELECT target, rowid AS staged FROM {ROWS}").fetchnumpy()  # noqa: S608
    index[np.ma.getdata(kept["target"])] = np.ma.getdata(kept["staged"])
    return index, n_staged - len(places)
