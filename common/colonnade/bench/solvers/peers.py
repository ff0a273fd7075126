"""Utility and time beside other libraries, at epsilon 1, where they are installed."""

import math
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray

EPSILON, DELTA, ROWS, FEATURES = 1.0, 1e-6, 100_000, 20
_NOT_PRIVATE_R2 = 0.70


def problem(n_rows: int = ROWS) -> tuple[FloatArray, FloatArray]:
    """Draw normal features and a label of which 0.70 can be explained."""
    draw = np.random.default_rng(0)
    features = draw.normal(size=(n_rows, FEATURES))
    signal = features @ draw.normal(size=FEATURES)
    noise = math.sqrt(1.0 / _NOT_PRIVATE_R2 - 1.0) * signal.std()
    return features, signal + noise * draw.normal(size=n_rows)


def measure_peers(*, fits: int, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Return the median R2 and time of a private linear regression, ours and theirs."""
    features, label = problem()
    span = 4.0 * float(label.std())
    makers: dict[str, Callable[[], Any]] = {
        "scikit-learn, not private": _plain,
        "colonnade": lambda: _ours(span),
        "diffprivlib": lambda: _diffprivlib(span),
    }
    rows: list[dict[str, Any]] = []
    for name, make in makers.items():
        progress(f"peers, {name}")
        try:
            model = make()
        except ImportError as error:
            rows.append({"library": name, "r2": None, "seconds": None, "note": str(error)})
            continue
        scores, seconds = [], []
        for _ in range(fits):
            begin = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(features, label)
            seconds.append(time.perf_counter() - begin)
            scores.append(float(model.score(features, label)))
        rows.append(
            {
                "library": name,
                "r2": statistics.median(scores),
                "seconds": statistics.median(seconds),
                "note": "",
            }
        )
    return rows


def _plain() -> Any:
    from sklearn.linear_model import LinearRegression

    return LinearRegression()


def _ours(span: float) -> Any:
    from colonnade.estimators import PrivateRidge

    return PrivateRidge(
        1e-3, epsilon=EPSILON, delta=DELTA, bounds=(-5.0, 5.0), y_bounds=(-span, span)
    )


def _diffprivlib(span: float) -> Any:
    from diffprivlib.models import LinearRegression  # type: ignore[import-not-found]

    return LinearRegression(epsilon=EPSILON, bounds_X=(-5.0, 5.0), bounds_y=(-span, span))
