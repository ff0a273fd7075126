"""Run a compiled kernel over row ranges on several threads.

The kernels release the interpreter lock, so plain threads suffice; unlike the thread pools inside
compiled code they survive a fork (a child simply makes its own).
"""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

# Ranges for each thread, and the fewest items worth a range.
_RANGES = 2
_LEAST = 16384

_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    global _pool  # noqa: PLW0603 - one pool a process; its threads do not exist after a fork
    _pool = None


os.register_at_fork(after_in_child=_forget_pool)


def cpu_count() -> int:
    """Count the processors this process may use."""
    return len(os.sched_getaffinity(0))


def over_ranges(
    work: Callable[[int, int], T], stop: int, *, threads: int | None = None, align: int = 1
) -> list[T]:
    """Call ``work(first, last)`` on ranges that cover ``0 .. stop`` and return all results.

    Threads take the next range when they are done with one, so the caller's own thread works while
    others are still waking up.

    Parameters
    ----------
    work
        A function of a half-open range; it must release the interpreter lock to gain anything.
    stop
        End of the whole range.
    threads
        How many; every processor of this process by default.
    align
        Inner borders are multiples of this.
    """
    global _pool  # noqa: PLW0603
    count = threads or cpu_count()
    parts = min(_RANGES * count, stop // max(align, _LEAST))
    if count == 1 or parts <= 1:
        return [work(0, stop)]
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=cpu_count(), thread_name_prefix="kernel")
    cuts = [stop * part // parts // align * align for part in range(parts)] + [stop]
    ranges = iter(list(itertools.pairwise(cuts)))

    def take() -> list[T]:
        return [work(first, last) for first, last in ranges]

    others = [_pool.submit(take) for _ in range(min(count, parts) - 1)]
    return [*take(), *(result for other in others for result in other.result())]
