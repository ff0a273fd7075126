"""Which databases the coordinator's store can use, and how they are opened."""

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.url import URL

from colonnade.core.errors import BadInput
from colonnade.core.permissions import private

_DRIVERS = {
    "sqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
# How long a transaction of a process that stands still may hold its rows in PostgreSQL.
STOPPED_S = 5.0
# How long a new coordinator waits for one that is stopping to let go of a SQLite file.
_PATIENCE_S = 2.0


def parsed_url(url: str) -> URL:
    """Return the URL of a database that can be used, or refuse it."""
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):  # a port that is no number
        raise BadInput("the database is no URL; for example sqlite:///coordinator.db") from None
    if parsed.drivername not in _DRIVERS:
        raise BadInput("the database must be sqlite:///FILE or postgresql+psycopg://HOST/NAME")
    return parsed.set(drivername=_DRIVERS[parsed.drivername])


def engine_of(url: URL) -> sa.Engine:
    """Return an engine whose commits survive a power cut."""
    if url.get_backend_name() == "postgresql":
        try:
            # Every statement sees what others committed before it; rows on which a decision rests
            # are locked first (`peers`), and what is written is conditional or unique.
            engine = sa.create_engine(url, isolation_level="READ COMMITTED")
        except ModuleNotFoundError:
            raise BadInput(
                "PostgreSQL needs its driver: pip install 'colonnade[postgres]'"
            ) from None
        sa.event.listen(engine, "connect", _check_encoding, insert=True)  # before anything is read
        sa.event.listen(engine, "connect", _limit_stopped)
        return engine
    if url.database and url.database != ":memory:":
        Path(url.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Made here, because SQLite would let everybody read it; its log has the same rights.
        os.close(private(url.database, os.O_RDWR | os.O_CREAT))
    patience = {"check_same_thread": False, "timeout": _PATIENCE_S}
    engine = sa.create_engine(url, connect_args=patience)

    @sa.event.listens_for(engine, "connect")
    def _durable(connection: Any, _: object) -> None:
        # FULL: an acknowledged submission must survive a power cut. EXCLUSIVE: one coordinator.
        for pragma in (
            "locking_mode=EXCLUSIVE",
            "journal_mode=WAL",
            "synchronous=FULL",
            "secure_delete=ON",
        ):
            connection.execute(f"PRAGMA {pragma}")

    return engine


def _check_encoding(connection: Any, _: object) -> None:
    """Refuse a PostgreSQL database whose text is not Unicode: names may be of any language."""
    found = connection.info.parameter_status("server_encoding")
    if found != "UTF8":
        raise BadInput(
            f"the coordinator's database has the encoding {found}; make one with "
            "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0 and put it into the URL"
        )


def _limit_stopped(connection: Any, _: object) -> None:
    """Have the server end a transaction whose process stands still: it may hold a job's row."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{STOPPED_S:.0f}s'")
    connection.commit()
