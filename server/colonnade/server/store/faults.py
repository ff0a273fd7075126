"""Failures of the coordinator's database, as this library's own errors."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from colonnade.core.errors import StoreBusy, StoreConflict, StoreFailed

_IN_USE = (
    "another coordinator uses this database; stop it first, or give this one a database of its own"
)
# PostgreSQL: a serialization failure, a deadlock, a key that is there; another process was first.
_CONFLICTS = ("40001", "40P01", "23505")


class StoreLost(StoreConflict):
    """The connection broke, or none can be made: the database restarts, or is gone."""


@contextmanager
def faults() -> Iterator[None]:
    """Raise what a database raises as errors of ours, without its texts."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        # Its text may hold parameters; the class and the driver's first line are enough.
        cause = str(getattr(error, "orig", None) or type(error).__name__).splitlines()[0]
        if _state(error) in _CONFLICTS:
            raise StoreConflict("another coordinator process was first") from None
        if "database is locked" in cause:
            raise StoreBusy(_IN_USE) from None
        kind = StoreLost if _is_lost(error) else StoreFailed
        raise kind(
            f"the coordinator's database failed ({cause}); see that it is there and not full, "
            "then start again"
        ) from None
    except OSError as error:
        raise StoreFailed(f"the coordinator's database failed: {error.strerror}") from None


def _state(error: sa.exc.SQLAlchemyError) -> str | None:
    """Return PostgreSQL's code of an error that it reported."""
    state: str | None = getattr(getattr(error, "orig", None), "sqlstate", None)
    return state


def _is_lost(error: sa.exc.SQLAlchemyError) -> bool:
    """Return whether a connection broke, or none was made: then the server gave no code."""
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    refused = isinstance(error, sa.exc.OperationalError) and hasattr(error.orig, "sqlstate")
    return error.connection_invalidated or (refused and _state(error) is None)
