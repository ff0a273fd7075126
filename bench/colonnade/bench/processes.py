"""What a process holds, as the kernel says, and how to look at it meanwhile."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Held:
    """Memory and descriptors of a process."""

    rss_mb: float
    descriptors: int


def held_by(pid: int) -> Held:
    """Return what a process holds now."""
    size = memory_of(pid)["VmRSS"] / 2**20
    return Held(size, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))


def memory_of(pid: int | str = "self") -> dict[str, int]:
    """Return the sizes that the kernel tells of a process, in bytes: ``VmRSS``, ``VmHWM``, ..."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = (line.partition(":") for line in lines if line.endswith(" kB"))
    return {name: 1024 * int(value.removesuffix(" kB")) for name, _, value in fields}


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def slope(hours: list[float], values: list[float]) -> float:
    """Return the median slope between all pairs of readings: a few outliers do not move it.

    (Theil 1950, Sen 1968.)
    """
    at, height = np.array(hours), np.array(values)
    first, second = np.triu_indices(at.size, 1)
    if not first.size:
        return 0.0
    return float(np.median((height[second] - height[first]) / (at[second] - at[first])))


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do ``work`` in a thread while the block runs; it ends at the event that it is given."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
