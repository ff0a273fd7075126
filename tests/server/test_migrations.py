"""Databases of earlier programs, in SQLite and in PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from support.postgres import reset, running_postgres

from colonnade.core.errors import BadInput
from colonnade.server.store import schema
from colonnade.server.store.connect import engine_of, parsed_url
from colonnade.server.store.sql import Database
from colonnade.server.store.tables import LEASES, TABLES


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/coordinator.db"
    found: str = request.getfixturevalue("server")
    reset(found)
    return found


def old_database(url: str) -> None:
    """Make a database as the program before migrations left it, with a job that runs."""
    engine = engine_of(parsed_url(url))
    with engine.begin() as connection:
        schema.migrate(connection, schema.BASELINE)
        connection.execute(sa.text("DROP TABLE alembic_version"))
        for name, state in (("old", "running"), ("done", "finished")):
            insert = sa.text(
                "INSERT INTO jobs (job_id, spec, submitted_by, submitted_at, state, reason, "
                "ended_at, outcome) VALUES (:name, :none, '', 0, :state, '', 0, :none)"
            )
            connection.execute(insert, {"name": name, "state": state, "none": b""})
    engine.dispose()


def test_an_old_database_is_migrated_to_the_tables_that_a_new_one_has(url: str) -> None:
    old_database(url)
    store = Database(url)
    with store.transaction():
        connection = store._connection
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, TABLES)
        leases = [tuple(row) for row in connection.execute(sa.select(LEASES))]
        revision = schema.revision_of(connection)
    assert [each for each in differences if "alembic_version" not in str(each)] == []
    assert leases == [("old", "", 0)]  # free for whoever comes first
    assert revision == schema.HEAD
    assert {row.job_id for row in store.jobs()} == {"old", "done"}
    store.close()
    Database(url).close()  # once is enough


def test_the_newest_revision_is_the_one_that_new_databases_are_marked_with() -> None:
    config = Config()
    folder = Path(schema.__file__).parent / "migrations"
    config.set_main_option("script_location", str(folder))
    assert ScriptDirectory.from_config(config).get_heads() == [schema.HEAD]


def test_a_database_of_a_newer_program_is_refused_and_left_alone(url: str) -> None:
    Database(url).close()
    engine = engine_of(parsed_url(url))
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE about SET schema_version = 99"))
    engine.dispose()
    with pytest.raises(BadInput, match="99"):
        Database(url)
