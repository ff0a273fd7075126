"""Rows of a database that DuckDB cannot open, copied through SQLAlchemy."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from colonnade.core.arrays import AnyArray
from colonnade.core.errors import BadInput

if TYPE_CHECKING:
    from sqlalchemy import Engine

_CHUNK_ROWS = 10_000


def copy_rows(
    staging: duckdb.DuckDBPyConnection, query: str, *, url: str, table: str
) -> tuple[str, ...]:
    """Copy the result of ``query`` into ``table`` as text columns ``c0``, ``c1``, ... .

    Rows are streamed in chunks, nothing is committed at the server, and neither the URL (it may
    hold a password) nor a message of the driver (it may hold data) appears in an error.

    Returns
    -------
    tuple of str
        The names of the columns.
    """
    from sqlalchemy.exc import SQLAlchemyError

    try:
        engine = _create_engine(url)
        try:
            return _copy(staging, engine, query=query, table=table)
        finally:
            engine.dispose()
    except SQLAlchemyError as error:
        kind = type(getattr(error, "orig", None) or error).__name__
        fix = "check the URL and try the query in the database's own client"
        raise BadInput(f"the query: the database answered with {kind}; {fix}") from None


def _create_engine(url: str) -> "Engine":
    import sqlalchemy

    address = sqlalchemy.make_url(url)
    name = address.database or ""
    is_file = (
        address.get_backend_name() == "sqlite" and name and not name.startswith(("file:", ":"))
    )
    if is_file and not Path(name).is_file():  # the driver would make an empty one
        raise BadInput(f"the database: no such SQLite file: {name}")
    try:
        return sqlalchemy.create_engine(address)
    except ModuleNotFoundError as error:
        raise BadInput(f"the database: its driver is not installed: {error.name}") from None


def _copy(
    staging: duckdb.DuckDBPyConnection, engine: "Engine", *, query: str, table: str
) -> tuple[str, ...]:
    with engine.connect() as connection:
        # Without no_parameters, a percent sign in the query would be taken for a parameter.
        options = connection.execution_options(
            stream_results=True, yield_per=_CHUNK_ROWS, no_parameters=True
        )
        result = options.exec_driver_sql(query)
        if not result.returns_rows:
            raise BadInput("the query: must be one SELECT without parameters")
        names = tuple(result.keys())
        columns = ", ".join(f"c{position} VARCHAR" for position in range(len(names)))
        staging.execute(f"CREATE TABLE {table} ({columns})")
        for rows in result.partitions(_CHUNK_ROWS):
            staging.register("colonnade_chunk", _as_columns(rows, len(names)))
            staging.execute(f"INSERT INTO {table} SELECT * FROM colonnade_chunk")  # noqa: S608
            staging.unregister("colonnade_chunk")
    return names


def _as_columns(rows: Sequence[Sequence[object]], n_columns: int) -> dict[str, AnyArray]:
    """Turn rows of any values into columns of texts, which is how DuckDB reads them fast."""
    return {
        f"c{position}": np.array([_as_text(row[position]) for row in rows], dtype=object)
        for position in range(n_columns)
    }


def _as_text(value: object) -> str | None:
    if value is None:
        return None
    return str(int(value)) if isinstance(value, bool) else str(value)
