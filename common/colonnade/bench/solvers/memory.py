"""How much memory a fit takes, counted by the kernel, over that of the data it is given."""

import ctypes
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from colonnade.optim.solvers.solve import Solver

SOLVERS = ("cd", "gcd", "sgd", "frank_wolfe", "admm", "dual")
"""The first passes over a table need as much memory as many."""

_PROCESS = Path("/proc/self")


def measure_memory(
    n_rows: int, n_features: int, *, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return the peak of a fit, data included, in units of the data; empty off Linux."""
    if not (_PROCESS / "clear_refs").exists():
        return []
    from colonnade.estimators import PrivateRidge

    draw = np.random.default_rng(0)
    features = draw.uniform(-1.0, 1.0, (n_rows, n_features))
    label = draw.uniform(-1.0, 1.0, n_rows)
    size = features.nbytes + label.nbytes
    rows = []
    for name, solver in _short_runs():
        progress(f"memory, {name}, {n_rows} rows, {n_features} columns")
        model = PrivateRidge(
            0.0 if name == "frank_wolfe" else 1.0,
            bounds=(-1.0, 1.0),
            y_bounds=(-1.0, 1.0),
            solver=solver,
            fit_intercept=name not in ("frank_wolfe", "dual"),
        )
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


def _short_runs() -> "Iterator[tuple[str, Solver]]":
    from colonnade.optim.solvers.solve import SOLVERS as KINDS

    settings: dict[str, dict[str, int]] = {
        "cd": {"passes": 1},
        "sgd": {"passes": 1, "batch": 1024},
        "dual": {"epochs": 2},
    }
    for name in SOLVERS:
        yield name, KINDS[name](**settings.get(name, {"iterations": 2}))


def _reset_peak() -> int:
    """Let the kernel's peak start anew; return what is resident now, in bytes."""
    # What an allocator keeps for later would be used and not be seen.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # glibc
        trim(0)
    (_PROCESS / "clear_refs").write_text("5")
    return _resident("VmRSS")


def _resident(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", (_PROCESS / "status").read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"the kernel tells no {name}")
    return 1024 * int(found[1])
