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
    """Call ``work(first, last)`` on ranges that cover ``0 .. stop``, one a thread.

    Parameters
    ----------
    work
        A function of a half-open range; it must release the interpreter lock to gain anything.
    stop
        End of the whole range.
    threads
        How many ranges; every processor of this process by default.
    align
        Inner borders are multiples of this.
    """
    global _pool  # noqa: PLW0603
    parts = min(threads or cpu_count(), max(1, stop // max(align, 4096)))
    if parts == 1:
        return [work(0, stop)]
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=cpu_count(), thread_name_prefix="kernel")
    cuts = [stop * part // parts // align * align for part in range(parts)] + [stop]
    later = [_pool.submit(work, first, last) for first, last in itertools.pairwise(cuts[1:])]
    return [work(cuts[0], cuts[1]), *(future.result() for future in later)]
