"""Staged rows, divided among the clients that they belong to."""

from dataclasses import dataclass
from itertools import islice

import duckdb
import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.data.schema import Schema
from colonnade.party.data.client_ids import client_id
from colonnade.party.data.clients import TableClients
from colonnade.party.data.reading.sources import MAIN, ROWS

_CLIENTS = f"{MAIN}.clients"
_CHUNK = 50_000
# In place of a client.
_NOBODY, _UNUSABLE = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """The rows of each client, brought together.

    Parameters
    ----------
    index
        Staged row of each row of the table.
    n_respelled
        Clients whose id is written in more than one way.
    """

    index: IntArray
    clients: TableClients
    n_respelled: int


def divide(database: duckdb.DuckDBPyConnection, origin: str, *, schema: Schema) -> Division:
    """Find the client of each staged row, whatever way its id is written there."""
    rule = schema.client_ids
    found = database.execute(f"SELECT DISTINCT client FROM {ROWS}").fetchall()  # noqa: S608
    forms = {raw: client_id(raw, rule) for (raw,) in found if raw is not None}
    missing = {client_id(token, rule) for token in schema.missing} | {""}
    names = sorted({form for form in forms.values() if form is not None} - missing)
    place_of = {name: place for place, name in enumerate(names)}
    places = {
        raw: _UNUSABLE if form is None else place_of.get(form, _NOBODY)
        for raw, form in forms.items()
    }
    of_rows = _places_of_rows(database, places)
    where = f"in {schema.client!r}; the first is data row"
    for code, fault in (
        (_NOBODY, "have no client"),
        (_UNUSABLE, f"have a client that is no id under client_ids = {rule!r}"),
    ):
        if faulty := int(np.count_nonzero(of_rows == code)):
            first = int(np.argmax(of_rows == code)) + 1
            raise BadInput(f"{origin}: {faulty} rows {fault} {where} {first}")
    counts = np.bincount(of_rows, minlength=len(names)).tolist()
    spellings = np.bincount(list(places.values()))
    return Division(
        index=np.argsort(of_rows, kind="stable"),
        clients=TableClients.of(names, counts),
        n_respelled=int(np.count_nonzero(spellings > 1)),
    )


def _places_of_rows(database: duckdb.DuckDBPyConnection, places: dict[str, int]) -> IntArray:
    """Return the place of each staged row's client, by what the row says."""
    database.execute(f"CREATE TABLE {_CLIENTS} (raw VARCHAR, place BIGINT)")
    insert = f"INSERT INTO {_CLIENTS} SELECT unnest(?::VARCHAR[]), unnest(?::BIGINT[])"
    pairs = iter(places.items())
    while chunk := list(islice(pairs, _CHUNK)):
        database.execute(insert, [[raw for raw, _ in chunk], [place for _, place in chunk]])
    found = database.execute(
        f"SELECT coalesce(place, {_NOBODY}) AS place FROM {ROWS} r "  # noqa: S608
        f"LEFT JOIN {_CLIENTS} ON client = raw ORDER BY r.rowid"
    ).fetchnumpy()
    return np.ma.getdata(found["place"]).astype(np.int64)
