"""One thread that runs the coordinator's logic, one durable transaction for all that waits."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from colonnade.core.errors import ColonnadeError, StoreFailed
from colonnade.server.engine import Coordinator
from colonnade.server.outgoing import Send
from colonnade.server.store import Store

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(slots=True)
class _Call:
    function: Callable[[], Any]
    future: "asyncio.Future[Any]"


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

    async def do(self, function: Callable[[], T]) -> T:
        """Run a method of the engine; its result is durable when this returns."""
        if self._failed is not None:
            raise self._failed
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls.put_nowait(_Call(function, future))
        return await future

    async def run(self) -> None:
        """Serve calls until cancelled; raise if the store failed, which ends the process."""
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._calls.get()]
            while not self._calls.empty():
                batch.append(self._calls.get_nowait())
            try:
                results = await loop.run_in_executor(self._thread, self._perform, batch)
            except BaseException as error:
                self._fail(batch, error)
                raise
            self._deliver(*self._engine.take())  # durable now
            for call, (value, problem) in zip(batch, results, strict=True):
                if call.future.cancelled():
                    continue
                if problem is not None:
                    call.future.set_exception(problem)
                else:
                    call.future.set_result(value)

    def close(self) -> None:
        """Wait for the call that runs and end the thread."""
        self._thread.shutdown(wait=True)

    def _perform(self, batch: list[_Call]) -> list[tuple[Any, ColonnadeError | None]]:
        results: list[tuple[Any, ColonnadeError | None]] = []
        with self._store.transaction():
            for call in batch:
                try:
                    results.append((call.function(), None))
                except StoreFailed:
                    raise
                except ColonnadeError as error:
                    results.append((None, error))  # refused before it wrote anything
        return results

    def _fail(self, batch: list[_Call], error: BaseException) -> None:
        known = isinstance(error, ColonnadeError)
        self._failed = error if known else StoreFailed("the coordinator stopped")  # type: ignore[assignment]
        while not self._calls.empty():
            batch.append(self._calls.get_nowait())
        for call in batch:
            if not call.future.done():
                call.future.set_exception(self._failed or StoreFailed("stopped"))
