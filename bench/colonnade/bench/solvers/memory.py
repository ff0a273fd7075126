"""How much memory a fit takes, counted by the kernel, over that of the data it is given."""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from colonnade.bench.processes import memory_of
from colonnade.bench.scratch import say
from colonnade.core.arrays import AnyArray, FloatArray

if TYPE_CHECKING:
    from colonnade.solvers.registry import Solver

SOLVERS = ("cd", "gcd", "sgd", "frank_wolfe", "admm", "dual")
"""The first passes over a table need as much memory as many."""

FORMS = ("dense", "csr", "csc")

_PROCESS = Path("/proc/self")


def measure_memory(
    n_rows: int,
    n_features: int,
    *,
    forms: tuple[str, ...] = FORMS,
) -> list[dict[str, Any]]:
    """Return the peak of a fit, data included, in units of the data; empty off Linux.

    A sparse table has ten times the columns and two values in a hundred.
    """
    if not (_PROCESS / "clear_refs").exists():
        return []
    draw = np.random.default_rng(0)
    label = draw.uniform(-1.0, 1.0, n_rows)
    rows = []
    for form in forms:
        features = _table(form, n_rows, n_features, draw)
        arrays = [features] if form == "dense" else _arrays(features)
        size = sum(array.nbytes for array in (*arrays, label))
        for name, solver in _short_runs():
            say(f"memory, {form}, {name}, {n_rows} rows, {features.shape[1]} columns")
            rows.append(
                {
                    "form": form,
                    "n": n_rows,
                    "p": features.shape[1],
                    "solver": name,
                    "data_mb": size / 1e6,
                    "peak_vs_data": 1.0 + _needed(name, solver, features, label) / size,
                }
            )
    return rows


def _needed(name: str, solver: "Solver", features: Any, label: FloatArray) -> int:
    """Return what a fit needs beside its data, in bytes."""
    from colonnade.estimators import PrivateRidge

    model = PrivateRidge(
        0.0 if name == "frank_wolfe" else 1.0,  # it takes no penalty
        bounds=(-1.0, 1.0),
        y_bounds=(-1.0, 1.0),
        solver=solver,
        fit_intercept=name not in ("frank_wolfe", "dual"),
    )
    model.fit(features[:2000], label[:2000])  # compiled code is not what is measured
    before = _reset_peak()
    model.fit(features, label)
    return memory_of()["VmHWM"] - before


def _table(form: str, n_rows: int, n_features: int, draw: np.random.Generator) -> Any:
    if form == "dense":
        return draw.uniform(-1.0, 1.0, (n_rows, n_features))
    from scipy.sparse import csr_array

    each = n_features // 5  # one value in every fifty columns
    columns = 50 * np.arange(each, dtype=np.int32) + draw.integers(
        50, size=(n_rows, each), dtype=np.int32
    )
    starts = np.arange(0, n_rows * each + 1, each, dtype=np.int32)
    values = draw.uniform(-1.0, 1.0, n_rows * each)
    return csr_array((values, columns.ravel(), starts), (n_rows, 50 * each)).asformat(form)


def _arrays(features: Any) -> tuple[AnyArray, ...]:
    return features.data, features.indices, features.indptr


def _short_runs() -> "Iterator[tuple[str, Solver]]":
    from colonnade.solvers.registry import SOLVERS as KINDS

    settings: dict[str, dict[str, int]] = {
        "cd": {"passes": 1},
        "sgd": {"passes": 1, "batch_size": 1024},
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
    return memory_of()["VmRSS"]
