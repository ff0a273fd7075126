"""Utility and time beside other libraries, at epsilon 1, where they are installed.

What they promise is not the same: diffprivlib's is pure (no delta), Opacus's is for one row more or
less. Ours is for one row replaced, which costs about twice as much as one more or less.
"""

import math
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from colonnade.bench.scratch import say
from colonnade.core.arrays import FloatArray

EPSILON, DELTA, ROWS, FEATURES = 1.0, 1e-6, 100_000, 20
# Bounds in standard deviations, the same for all. Wider ones cost ours little and ruin
# diffprivlib's, whose noisy quadratic form then has directions without a minimum.
BOUND = 3.0
_NOT_PRIVATE_R2 = 0.70


def problem(n_rows: int) -> tuple[FloatArray, FloatArray]:
    """Draw normal features and a label of which 0.70 can be explained."""
    draw = np.random.default_rng(0)
    features = draw.normal(size=(n_rows, FEATURES))
    signal = features @ draw.normal(size=FEATURES)
    noise = math.sqrt(1.0 / _NOT_PRIVATE_R2 - 1.0) * signal.std()
    return features, signal + noise * draw.normal(size=n_rows)


def measure_peers(*, fits: int, n_rows: int = ROWS) -> list[dict[str, Any]]:
    """Return the median R2 and time of a private linear regression, ours and theirs."""
    features, label = problem(n_rows)
    span = BOUND * float(label.std())
    makers: dict[str, Callable[[], Any]] = {
        "scikit-learn, not private": _plain,
        "colonnade": lambda: _ours(span),
        "diffprivlib": lambda: _diffprivlib(span),
        "opacus": lambda: _opacus(span),
    }
    rows: list[dict[str, Any]] = []
    for name, make in makers.items():
        say(f"peers, {name}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = make()
            except ImportError as error:
                nothing = {"r2": None, "seconds": None, "note": _absent(error)}
                rows.append({"library": name, "n": n_rows, **nothing})
                continue
            measured = _measure(model, features, label, fits)
            rows.append({"library": name, "n": n_rows, **measured, "note": ""})
    return rows


def _measure(model: Any, features: FloatArray, label: FloatArray, fits: int) -> dict[str, float]:
    scores, seconds = [], []
    for _ in range(fits):
        begin = time.perf_counter()
        model.fit(features, label)
        seconds.append(time.perf_counter() - begin)
        scores.append(float(model.score(features, label)))
    return {"r2": statistics.median(scores), "seconds": statistics.median(seconds)}


def _absent(error: ImportError) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "not installed"
    return f"installed, but it does not load here: {error.msg.partition(' (')[0]}"


def _plain() -> Any:
    from sklearn.linear_model import LinearRegression

    return LinearRegression()


def _ours(span: float) -> Any:
    from colonnade.estimators import PrivateRidge

    return PrivateRidge(
        1e-3, epsilon=EPSILON, delta=DELTA, bounds=(-BOUND, BOUND), y_bounds=(-span, span)
    )


def _diffprivlib(span: float) -> Any:
    from diffprivlib.models import LinearRegression  # type: ignore[import-not-found]

    return LinearRegression(epsilon=EPSILON, bounds_X=(-BOUND, BOUND), bounds_y=(-span, span))


def _opacus(span: float) -> Any:
    from colonnade.bench.solvers.opacus_peer import OpacusRegression

    return OpacusRegression(BOUND, span, epsilon=EPSILON, delta=DELTA)
