"""A PostgreSQL of the tests' own."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from colonnade.bench.scale.postgres import temporary_postgres

PASSWORD = "correct-horse"


@contextmanager
def running_postgres() -> Iterator[str]:
    """Start a PostgreSQL that asks for a password; yield its URL.

    Not in a folder of pytest's: a pytest that a test starts would make the folder that they share
    private to one user again, and a server started by root runs as another.
    """
    with (
        tempfile.TemporaryDirectory(prefix="colonnade-") as folder,
        temporary_postgres(Path(folder), PASSWORD) as url,
    ):
        if url is None:
            pytest.skip("PostgreSQL is not installed, or does not run as this user")
        yield url


def reset(url: str) -> None:
    """Remove all tables."""
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    engine.dispose()
