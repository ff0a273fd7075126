"""A coordinator that dies at a commit."""

from collections.abc import Iterator
from contextlib import contextmanager

from colonnade.server.store.sql import Database


class Died(Exception):
    """Ends a coordinator at a commit."""


class Dying(Database):
    """A store whose process dies just before or just after its commit number ``last``."""

    def __init__(self, url: str, last: int, *, after: bool) -> None:
        super().__init__(url)
        self._left, self._after = last, after

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._left -= 1
        with super().transaction():
            yield
            if self._left == 0 and not self._after:
                raise Died
        if self._left == 0:
            raise Died
