"""How much memory a fit takes, counted by the kernel, over that of the data it is given."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SOLVERS = ("cd", "sgd")
"""One that reads columns, one that reads rows and so needs the table a second time."""

_PROCESS = Path("/proc/self")


def measure_memory(
    n_rows: int, n_features: int, *, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return the peak of a fit, data included, in units of the data; empty off Linux."""
    if not (_PROCESS / "clear_refs").exists():
        return []
    from colonnade.estimators import PrivateRidge
    from colonnade.optim.solvers.coordinate import CoordinateDescent
    from colonnade.optim.solvers.sgd import StochasticDescent
    from colonnade.optim.solvers.solve import Solver

    solvers: dict[str, Solver] = {
        "cd": CoordinateDescent(passes=1),
        "sgd": StochasticDescent(passes=1, batch=1024),
    }
    draw = np.random.default_rng(0)
    features = draw.uniform(-1.0, 1.0, (n_rows, n_features))
    label = draw.uniform(-1.0, 1.0, n_rows)
    size = features.nbytes + label.nbytes
    rows = []
    for name in SOLVERS:
        progress(f"memory, {name}, {n_rows} rows, {n_features} columns")
        model = PrivateRidge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0), solver=solvers[name])
        model.fit(features[:2000], label[:2000])  # compiled code is not what is measured
        before = _reset_peak()
        model.fit(features, label)
        peak = size + _resident("VmHWM") - before
        rows.append(
            {
                "n": n_rows,
                "p": n_features,
                "solver": name,
                "data_mb": size / 1e6,
                "peak_vs_data": peak / size,
            }
        )
    return rows


def _reset_peak() -> int:
    """Let the kernel's peak start anew; return what is resident now, in bytes."""
    (_PROCESS / "clear_refs").write_text("5")
    return _resident("VmRSS")


def _resident(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", (_PROCESS / "status").read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"the kernel tells no {name}")
    return 1024 * int(found[1])
