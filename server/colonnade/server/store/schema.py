"""Bring a database to the tables of this program.

A new database is made at once and marked as the newest revision; one of an earlier program is
changed by the migrations, in the same transaction, whichever process comes first. A test compares
both ways.
"""

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from colonnade.core.errors import BadInput
from colonnade.server.store.tables import ABOUT, SCHEMA_VERSION, TABLES

HEAD = "0002"
"""The newest revision."""
BASELINE = "0001"
_BASELINE_VERSION = 4  # of databases that were made before there were migrations
_LOCK = 0x636F6C6F6E6E6164  # of PostgreSQL: any number that others are unlikely to take
_REVISIONS = sa.Table(
    "alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True)
)


def prepare(connection: sa.Connection) -> None:
    """Create or migrate the tables, in the open transaction; refuse those of a newer program."""
    if connection.dialect.name == "postgresql":  # several processes may start at once
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    there = set(sa.inspect(connection).get_table_names())
    if ABOUT.name not in there:
        TABLES.create_all(connection)
        connection.execute(sa.insert(ABOUT).values(schema_version=SCHEMA_VERSION))
        _mark(connection, HEAD)
        return
    version = connection.execute(sa.select(ABOUT.c.schema_version)).scalar_one()
    if not _BASELINE_VERSION <= version <= SCHEMA_VERSION:
        raise BadInput(
            f"the database has schema version {version}, this program {SCHEMA_VERSION}; "
            "use the program that made it or a new database"
        )
    if _REVISIONS.name not in there:
        _mark(connection, BASELINE)
    if connection.execute(sa.select(_REVISIONS.c.version_num)).scalar_one() != HEAD:
        migrate(connection, HEAD)


def migrate(connection: sa.Connection, revision: str) -> None:
    """Run the migrations up to ``revision``."""
    from alembic import command  # needed once in the life of a database
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    command.upgrade(config, revision)


def _mark(connection: sa.Connection, revision: str) -> None:
    _REVISIONS.create(connection, checkfirst=True)
    connection.execute(sa.insert(_REVISIONS).values(version_num=revision))


def revision_of(connection: sa.Connection) -> Any:
    """Return the revision that a database is marked with."""
    return connection.execute(sa.select(_REVISIONS.c.version_num)).scalar_one()
