"""A PostgreSQL of the tests' own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from colonnade.bench.scale.postgres import temporary_postgres

PASSWORD = "correct-horse"


@contextmanager
def running_postgres(folder: Path) -> Iterator[str]:
    """Start a PostgreSQL that asks for a password; yield its URL."""
    with temporary_postgres(folder, PASSWORD) as url:
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
