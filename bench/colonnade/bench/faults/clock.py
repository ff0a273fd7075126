"""An event loop in virtual time: it never waits, and what happens follows from the program alone.

Threads are none: what the shipped code hands to one is run where it is handed over.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """Waits for nothing: the time that would be waited is added to the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        """Go to when something is due."""
        if timeout is None:
            raise RuntimeError("the simulation waits for something that will never happen")
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock stands still while anything can be done, and then jumps."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual time, in seconds since the loop was made."""
        return self._jumping.now

    def run_in_executor(  # type: ignore[override]
        self, _executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """Run ``func`` here and now."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - also a simulated death goes to who waits
            future.set_exception(error)
        return future
