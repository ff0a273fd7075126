"""More from one Gram matrix: other penalties, a whole path, correlations, as a report has them.

Privacy: all of it is arithmetic on what was released, so none of it costs anything
(post-processing: Dwork and Roth 2014, Proposition 2.1).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.gram import elastic_net, lasso_path, ridge, within_ball, within_box
from colonnade.linear.intervals import Intervals

PENALTIES = ("ball", "l1", "ridge", "elastic-net", "box")
_USES = {
    "strength": ("ball", "l1", "ridge", "elastic-net"),
    "mix": ("elastic-net",),
    "radius": ("ball",),
}

# Features in a summary's path and correlations: more would fill a page and say no more.
_MAX_FEATURES = 120
_PATH_POINTS = 40
_PATH_END = 0.01  # of the penalty that leaves nothing
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """A penalty and its numbers, in standard deviations of features and label."""

    penalty: str = "ball"
    strength: float | None = None  # None: the job's own number of errors of an inner product
    mix: float = 0.5  # part of an elastic net's strength that is on the L1 norm
    radius: float | None = None  # None: the job's
    low: float = -math.inf  # of every coefficient in a box
    high: float = math.inf

    def __post_init__(self) -> None:
        if self.penalty not in PENALTIES:
            raise ValueError(f"a penalty is one of {', '.join(PENALTIES)}")
        for name, usual in (("strength", None), ("mix", 0.5), ("radius", None)):
            if getattr(self, name) != usual and self.penalty not in _USES[name]:
                raise ValueError(f"the penalty {self.penalty} has no {name}")
        if (self.low, self.high) != (-math.inf, math.inf) and self.penalty != "box":
            raise ValueError(f"the penalty {self.penalty} has no low or high end")
        if self.strength is not None and not 0.0 <= self.strength < math.inf:
            raise ValueError("a penalty's strength must be 0 or more, and finite")
        if not 0.0 <= self.mix <= 1.0:
            raise ValueError("an elastic net's mix lies between 0 (ridge) and 1 (L1)")
        if self.radius is not None and not 0.0 < self.radius < math.inf:
            raise ValueError("a radius must be positive and finite")
        if not self.low <= self.high or self.low == math.inf or self.high == -math.inf:
            raise ValueError("a box's low end must not lie above its high end")
        if self.penalty == "box" and math.isinf(self.low) and math.isinf(self.high):
            raise ValueError("a box needs a low end, a high end or both")


class Penalised(Protocol):
    """What a specification says of its own penalty."""

    @property
    def penalty(self) -> float:
        """Weight of the L1 norm, in errors of a product between parties."""

    @property
    def radius(self) -> float:
        """Radius of the L1 ball, in standard deviations."""


def solution(
    spec: Penalised, gram: FloatArray, target: FloatArray, *, error: float, wanted: Wanted
) -> FloatArray:
    """Return the solution under a penalty, in standard deviations."""
    usual = spec.penalty * error
    strength = usual if wanted.strength is None else wanted.strength
    if wanted.penalty == "ball":
        return within_ball(gram, target, wanted.radius or spec.radius, l1=strength)
    if wanted.penalty == "ridge":
        return ridge(gram, target, strength)
    if wanted.penalty == "box":
        low, high = np.full(target.size, wanted.low), np.full(target.size, wanted.high)
        return within_box(gram, target, low, high)
    mix = 1.0 if wanted.penalty == "l1" else wanted.mix
    return elastic_net(gram, target, l1=mix * strength, l2=(1.0 - mix) * strength)


def gram_summary(
    names: Sequence[tuple[str, str]], gram: FloatArray, target: FloatArray, *, chosen: float
) -> tuple[Any, dict[str, Any]]:
    """Return which features a report shows, and their path and correlations."""
    largest = np.argsort(-np.abs(target), kind="stable")[:_MAX_FEATURES]
    shown = np.sort(largest)  # parties' blocks stay together
    path = lasso_path(gram, target, count=_PATH_POINTS, least=_PATH_END)
    return shown, {
        "features": [dict(zip(("party", "name"), names[i], strict=True)) for i in shown.tolist()],
        "left_out": len(names) - shown.size,
        "path": {
            "penalties": path.penalties.tolist(),
            "coefs": rounded(path.coefs[:, shown]),
            "chosen": chosen,
        },
        "correlations": rounded(_with_label(gram, target)[np.ix_([*shown, -1], [*shown, -1])]),
    }


def _with_label(gram: FloatArray, target: FloatArray) -> FloatArray:
    """Return the correlations of all features and, last, the label."""
    size = len(target)
    whole = np.eye(size + 1)
    whole[:size, :size] = gram
    whole[size, :size] = whole[:size, size] = target
    return correlations(whole)


def correlations(gram: FloatArray) -> FloatArray:
    """Return the correlation matrix that a Gram matrix stands for."""
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-12))
    clipped: FloatArray = np.clip(gram / np.outer(scale, scale), -1.0, 1.0)
    return clipped


def intervals_summary(
    found: Intervals, shown: Any, *, level: float, **more: FloatArray
) -> dict[str, Any]:
    """Return intervals of the columns ``shown`` as a report has them, with ``more`` of the same."""
    numbers = {field.name: getattr(found, field.name) for field in fields(found)} | more
    lists = {name: rounded(values[shown]) for name, values in numbers.items()}
    p_values = [float(f"{value:.3g}") for value in found.p_values()[shown]]
    return {"level": level, **lists, "p_value": p_values}


def rounded(values: FloatArray) -> Any:
    """Return numbers as a report has them."""
    return np.round(values, _DIGITS).tolist()
