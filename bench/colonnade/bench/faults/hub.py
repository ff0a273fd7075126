"""The coordinator's process: the shipped store, engine, worker and service, and how it dies."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

import sqlalchemy as sa

from colonnade.bench.faults.disk import Died
from colonnade.core.errors import ColonnadeError, Unreachable
from colonnade.server.api.attendance import Attendance
from colonnade.server.api.auth import Authenticator
from colonnade.server.api.parties import FederationServicer
from colonnade.server.api.renewal import Renewals
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.sessions import OpenSessions
from colonnade.server.engine.worker import Worker
from colonnade.server.store import sql
from colonnade.server.store.connect import engine_of
from colonnade.server.store.sql import Database

T = TypeVar("T")
_TICK_S = 1.0
# Of all simulated stores: statements, and the database that each begins with.
_TEXTS: dict[Any, Any] = {}
_EMPTY: list[bytes] = []


class FallibleStore(Database):
    """The shipped store in memory: commits are atomic and last, and a process may die at one."""

    def __init__(self, dies: Callable[[], bool]) -> None:
        with patch.object(sql, "engine_of", _with_tables):
            super().__init__("sqlite://")
        if not _EMPTY:
            driver: Any = self._connection.connection.driver_connection
            _EMPTY.append(driver.serialize())
        self._dies, self._texts = dies, _TEXTS

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit, unless the process dies just before; it may also die just after."""
        with super().transaction():
            yield
            if self._dies():
                raise Died
        if self._dies():
            raise Died


def _with_tables(url: sa.URL) -> sa.Engine:
    """Return the shipped engine of a database in memory that has its tables already."""
    engine = engine_of(url)

    @sa.event.listens_for(engine, "connect")
    def _filled(connection: Any, _: object) -> None:
        if _EMPTY:
            connection.deserialize(_EMPTY[0])

    return engine


class Hub:
    """A coordinator that can be killed and started again on its store."""

    def __init__(
        self,
        store: Database,
        federation: str,
        clock: Callable[[], float],
        died: Callable[[], None],
    ) -> None:
        self.store, self._federation, self._clock, self._died = store, federation, clock, died
        self.servicer: FederationServicer | None = None
        self.engine: Coordinator | None = None
        self._worker: Worker | None = None
        self._tasks: dict[asyncio.Task[Any], None] = {}  # in the order of their beginning

    def start(self) -> None:
        """Start a process on what the store holds."""
        loop = asyncio.get_running_loop()
        self.engine = Coordinator(
            self.store, self._federation, clock=self._clock, monotonic=loop.time
        )
        board, attendance = OpenSessions(), Attendance(clock=self._clock)
        self._worker = Worker(self.engine, self.store, board.deliver)
        authenticator = Authenticator(self._federation, insecure=True)
        self.servicer = FederationServicer(
            self.engine, self._worker, board, authenticator, attendance, Renewals()
        )
        working = self.spawn(self._worker.run())
        working.add_done_callback(self._ended)
        self.spawn(self._tick(self._worker, self.engine))

    def spawn(self, work: Any) -> "asyncio.Task[Any]":
        """Run what ends with this process."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._over)
        return task

    def kill(self) -> None:
        """End the process: what is in memory is gone."""
        self.servicer, self.engine, self._worker = None, None, None
        tasks, self._tasks = self._tasks, {}
        for task in tasks:
            task.cancel()

    async def do(self, call: Callable[[Coordinator], T]) -> T:
        """Have the running process do something; `Unreachable` if there is none."""
        if self._worker is None or self.engine is None:
            raise Unreachable("the coordinator does not run")
        engine = self.engine
        return await self._worker.do(lambda: call(engine))

    async def _tick(self, worker: Worker, engine: Coordinator) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            try:
                await worker.do(engine.tick)
            except ColonnadeError:
                return  # the process is ending

    def _ended(self, working: "asyncio.Task[Any]") -> None:
        if not working.cancelled() and self.servicer is not None:
            self._died()

    def _over(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled():
            task.exception()  # whoever waited for it was told
