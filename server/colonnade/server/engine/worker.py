"""One thread that runs the coordinator's logic, one durable transaction for all that waits."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from colonnade.core.errors import ColonnadeError, StoreConflict, StoreFailed, Unreachable
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.outbox import Send
from colonnade.server.store.base import Store
from colonnade.server.store.faults import StoreLost

logger = logging.getLogger(__name__)
T = TypeVar("T")
# How often a batch is tried whose transaction another process was ahead of.
_ATTEMPTS = 4
# How long a database that restarts is waited for, and between two looks at it.
_PATIENCE_S, _PAUSE_S = 60.0, 0.25


@dataclass(slots=True)
class _Call:
    function: Callable[[], Any]
    future: "asyncio.Future[Any]"
    reads: bool


class Worker:
    """Takes calls from the event loop; what arrives together is committed together."""

    def __init__(
        self,
        engine: Coordinator,
        store: Store,
        deliver: Callable[[list[Send], set[str]], None],
    ) -> None:
        self._engine, self._store, self._deliver = engine, store, deliver
        self._calls: asyncio.Queue[_Call] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="coordinator")
        self._failed: ColonnadeError | None = None
        self._stopping = threading.Event()

    async def do(self, function: Callable[[], T]) -> T:
        """Run a method of the engine; its result is durable when this returns.

        What nobody expected may have changed memory and not the store: it ends the process.
        """
        return await self._put(function, reads=False)

    async def read(self, function: Callable[[], T]) -> T:
        """Run what only looks: nothing that it raises hurts anyone else."""
        return await self._put(function, reads=True)

    async def run(self) -> None:
        """Serve calls until cancelled; raise if the store failed, which ends the process."""
        loop, batch = asyncio.get_running_loop(), list[_Call]()
        try:
            while True:
                batch = [await self._calls.get()]
                while not self._calls.empty():
                    batch.append(self._calls.get_nowait())
                results = await loop.run_in_executor(self._thread, self._perform, batch)
                self._deliver(*self._engine.take())  # durable now
                for call, (value, problem) in zip(batch, results, strict=True):
                    if call.future.cancelled():
                        continue
                    if problem is not None:
                        call.future.set_exception(problem)
                    else:
                        call.future.set_result(value)
        except BaseException as error:
            self._fail(batch, error)
            raise

    def stop_waiting(self) -> None:
        """Let calls fail from now on if the database is away: the process stops."""
        self._stopping.set()

    def close(self) -> None:
        """Wait for the call that runs and end the thread."""
        self.stop_waiting()
        self._thread.shutdown(wait=True)

    async def _put(self, function: Callable[[], T], *, reads: bool) -> T:
        if self._failed is not None:
            raise self._failed
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls.put_nowait(_Call(function, future, reads))
        return await future

    def _perform(self, batch: list[_Call]) -> list[tuple[Any, Exception | None]]:
        """Run calls in one transaction; after a conflict, anew on what the store holds.

        A database that several processes share may restart without ending them all. While it is
        away nothing is durable, so no call returns; a connection that broke in a commit may have
        been heard or not, which loading anew tells.
        """
        left, until = _ATTEMPTS, None
        while True:
            try:
                if left < _ATTEMPTS or until is not None:
                    self._engine.reload()
                return self._attempt(batch)
            except StoreLost:
                if self._store.peers is None:
                    raise
                if until is None:
                    until = time.monotonic() + _PATIENCE_S
                    logger.warning("store_lost calls=%d", len(batch))
                if time.monotonic() > until or self._stopping.wait(_PAUSE_S):
                    raise
            except StoreConflict:
                left -= 1
                if not left or self._store.peers is None:
                    raise
                logger.info("store_conflict calls=%d", len(batch))

    def _attempt(self, batch: list[_Call]) -> list[tuple[Any, Exception | None]]:
        results: list[tuple[Any, Exception | None]] = []
        with self._store.transaction():
            for call in batch:
                try:
                    results.append((call.function(), None))
                except StoreFailed:
                    raise
                except ColonnadeError as error:
                    results.append((None, error))  # refused before it wrote anything
                except Exception as error:
                    if not call.reads:
                        raise
                    results.append((None, error))
            if self._store.peers is not None:
                self._store.peers.announce(self._engine.changed)
        return results

    def _fail(self, batch: list[_Call], error: BaseException) -> None:
        stopped = Unreachable("the coordinator is stopping; it goes on where it was")
        self._failed = error if isinstance(error, ColonnadeError) else stopped
        while not self._calls.empty():
            batch.append(self._calls.get_nowait())
        for call in batch:
            if not call.future.done():
                call.future.set_exception(self._failed)
