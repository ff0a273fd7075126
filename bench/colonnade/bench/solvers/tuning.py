"""Equal effort for every solver: as many settings, as many seeds, the best mean error.

What a search found is kept in ``tuned.json``, so that a reported run need not search again; it uses
noise that no search saw. Nothing of a search is charged to epsilon, as in the papers.
"""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Setting: TypeAlias = tuple[float, ...]
Tuned: TypeAlias = Mapping[str, Mapping[str, Sequence[Setting]]]
"""By case and solver: the settings found, one for each cell of the table's row."""

_FILE = Path(__file__).with_name("tuned.json")


def grid(*values: Sequence[float], size: int) -> tuple[Setting, ...]:
    """Return all combinations, ``size`` of them: as many for every solver of a comparison."""
    found = tuple(itertools.product(*values))
    if len(found) != size:
        raise ValueError(f"the grid has {len(found)} settings instead of {size}")
    return found


def best_setting(
    error: Callable[[Setting, int], float], settings: Sequence[Setting], *, seeds: int
) -> Setting:
    """Return the setting with the least mean error over seeds ``0 .. seeds - 1``.

    All settings are tried on the first seed, and the best third of them on the others.
    """
    first = {setting: error(setting, 0) for setting in settings}
    rest = sorted(first, key=first.__getitem__)[: -(-len(first) // 3)]

    def mean(setting: Setting) -> float:
        others = [error(setting, seed) for seed in range(1, seeds)]
        return float(np.mean([first[setting], *others]))

    means = {setting: mean(setting) for setting in rest}
    return min(means, key=means.__getitem__)


def load_tuned(part: str) -> Tuned:
    """Return what the last search found for one part of the benchmark."""
    found: dict[str, dict[str, list[list[float]]]] = json.loads(_FILE.read_text("utf-8"))[part]
    return {
        case: {solver: [tuple(each) for each in row] for solver, row in solvers.items()}
        for case, solvers in found.items()
    }


def tuned_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[list[float]]]]:
    """Return the settings of measured rows as ``tuned.json`` keeps them."""
    found: dict[str, dict[str, list[list[float]]]] = {}
    for row in rows:
        for case, setting in row["settings"].items():
            found.setdefault(case, {}).setdefault(row["solver"], []).append(list(setting))
    return found
