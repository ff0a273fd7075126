"""What a process holds, as the kernel says."""

import os
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
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    size = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return Held(size, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))


def slope(hours: list[float], values: list[float]) -> float:
    """Return the median slope between all pairs of readings: a few outliers do not move it.

    (Theil 1950, Sen 1968.)
    """
    at, height = np.array(hours), np.array(values)
    first, second = np.triu_indices(at.size, 1)
    if not first.size:
        return 0.0
    return float(np.median((height[second] - height[first]) / (at[second] - at[first])))
