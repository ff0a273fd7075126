"""Penalties: separable, with a proximal map each; they never read data.

Solvers may work on scaled features. The penalty applies to ``scales * w``, the coefficients in the
users' units, whatever the solver's own; a coordinate of scale 0 (the intercept) is free.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.registry import add_entry, find_entry


@dataclass(frozen=True, slots=True)
class Penalty:
    """``l1 |w| + l2 |w|**2 / 2`` within the box ``|w_j| <= bound``.

    Examples
    --------
    >>> import numpy as np
    >>> penalty = Penalty(l1=0.5, bound=2.0)
    >>> penalty.name
    'l1 in a box'
    >>> penalty.prox(np.array([0.3, -1.5, 9.0]), np.ones(3), np.ones(3))
    array([ 0., -1.,  2.])
    """

    l1: float = 0.0
    l2: float = 0.0
    bound: float = math.inf

    def __post_init__(self) -> None:
        strengths = (self.l1, self.l2)
        if not all(math.isfinite(strength) and strength >= 0.0 for strength in strengths):
            raise ValueError("the strength of a penalty is finite and not negative")
        if not self.bound > 0.0:
            raise ValueError("a box has a positive bound")

    @property
    def name(self) -> str:
        """What it is called: none, l1, l2, elastic net, with or without a box."""
        kind = {(0, 0): "none", (1, 0): "l1", (0, 1): "l2", (1, 1): "elastic net"}
        base = kind[int(self.l1 > 0.0), int(self.l2 > 0.0)]
        if math.isinf(self.bound):
            return base
        return "box" if base == "none" else f"{base} in a box"

    @property
    def smooth(self) -> bool:
        """Whether it has a gradient everywhere."""
        return self.l1 == 0.0 and math.isinf(self.bound)

    def value(self, coef: FloatArray, scales: FloatArray) -> float:
        """Return the penalty of ``coef``; infinite outside the box."""
        size = np.abs(scales * coef)
        if np.any(size > self.bound * (1.0 + 1e-9)):
            return math.inf
        return float(self.l1 * size.sum() + 0.5 * self.l2 * (size**2).sum())

    def prox(self, point: FloatArray, step: FloatArray, scales: FloatArray) -> FloatArray:
        """Return ``argmin_w penalty(w) + (w - point)**2 / (2 step)``, coordinate by coordinate.

        In one dimension the box only projects the minimum of the rest.
        """
        shrunk = np.abs(point) - step * self.l1 * scales
        moved = np.sign(point) * np.maximum(shrunk, 0.0) / (1.0 + step * self.l2 * scales**2)
        if math.isinf(self.bound):
            return moved
        most = np.divide(self.bound, scales, out=np.full_like(moved, math.inf), where=scales > 0)
        return np.clip(moved, -most, most)

    def prox_one(self, point: float, step: float, scale: float) -> float:
        """Return the proximal map of one coordinate; the same as `prox`, without arrays."""
        shrunk = max(abs(point) - step * self.l1 * scale, 0.0)
        moved = math.copysign(shrunk / (1.0 + step * self.l2 * scale * scale), point)
        if self.bound == math.inf or scale == 0.0:
            return moved
        most = self.bound / scale
        return min(max(moved, -most), most)

    def rescaled(self, width: float) -> "Penalty":
        """Return ``Q`` with ``Q(w) = P(width w) / width**2``: a label in units of ``width``."""
        return Penalty(self.l1 / width, self.l2, self.bound / width)

    def to_object(self) -> dict[str, float | str | None]:
        """Return plain values for JSON."""
        box = self.bound if math.isfinite(self.bound) else None
        return {"l1": self.l1, "l2": self.l2, "box": box}


class Separable(Protocol):
    """All that a new penalty has to say, in the users' units: a sum over coefficients."""

    def value(self, coef: FloatArray) -> FloatArray:
        """Return the penalty of each coefficient."""

    def prox(self, point: FloatArray, step: FloatArray) -> FloatArray:
        """Return ``argmin_w value(w) + (w - point)**2 / (2 step)`` for each coefficient."""


@dataclass(frozen=True, slots=True)
class CustomPenalty:
    """A registered penalty, brought to a solver's units.

    With ``Q(c) = P(width s c) / width**2`` and ``t = width s c`` the proximal point of ``Q`` is
    ``prox_(step s**2 P)(width s p) / (width s)``, so ``P`` itself knows neither scales nor widths.

    Parameters
    ----------
    width
        Of the label that coefficients are relative to.

    Examples
    --------
    >>> import numpy as np
    >>> class Lasso:
    ...     def value(self, coef):
    ...         return np.abs(coef)
    ...     def prox(self, point, step):
    ...         return np.sign(point) * np.maximum(np.abs(point) - step, 0.0)
    >>> penalty = CustomPenalty("example", 1.0, Lasso())
    >>> penalty.prox(np.array([3.0, 3.0]), np.ones(2), np.array([2.0, 0.0]))
    array([1., 3.])
    """

    name: str
    strength: float
    penalty: Separable = field(repr=False, compare=False)
    width: float = 1.0

    @property
    def smooth(self) -> bool:
        """Whether it is known to have a gradient everywhere: it is not."""
        return False

    def value(self, coef: FloatArray, scales: FloatArray) -> float:
        """Return the penalty of ``coef``."""
        users = (self.width * scales * coef)[scales > 0.0]
        return float(np.sum(self.penalty.value(users))) / self.width**2

    def prox(self, point: FloatArray, step: FloatArray, scales: FloatArray) -> FloatArray:
        """Return ``argmin_w penalty(w) + (w - point)**2 / (2 step)``, coordinate by coordinate."""
        moved, held = point.copy(), scales > 0.0
        factor = self.width * scales[held]
        moved[held] = self.penalty.prox(factor * point[held], (step * scales**2)[held]) / factor
        return moved

    def prox_one(self, point: float, step: float, scale: float) -> float:
        """Return the proximal map of one coordinate."""
        return float(self.prox(np.array([point]), np.array([step]), np.array([scale]))[0])

    def rescaled(self, width: float) -> "CustomPenalty":
        """Return ``Q`` with ``Q(w) = P(width w) / width**2``: a label in units of ``width``."""
        return replace(self, width=self.width * width)

    def to_object(self) -> dict[str, float | str | None]:
        """Return plain values for JSON."""
        return {"l1": 0.0, "l2": 0.0, "box": None, "name": self.name, "strength": self.strength}


AnyPenalty: TypeAlias = Penalty | CustomPenalty
MakePenalty: TypeAlias = Callable[[float], AnyPenalty]
"""From a strength to the penalty."""


def no_penalty() -> Penalty:
    """Return no penalty at all.

    Examples
    --------
    >>> no_penalty().name
    'none'
    """
    return Penalty()


def lasso(alpha: float) -> Penalty:
    """Return ``alpha |w|_1``.

    Examples
    --------
    >>> lasso(0.1)
    Penalty(l1=0.1, l2=0.0, bound=inf)
    """
    return Penalty(l1=alpha)


def ridge(alpha: float) -> Penalty:
    """Return ``alpha |w|**2 / 2``.

    Examples
    --------
    >>> ridge(0.1).smooth
    True
    """
    return Penalty(l2=alpha)


def elastic_net(alpha: float, l1_ratio: float) -> Penalty:
    """Return the mixture that scikit-learn calls by these two numbers.

    Examples
    --------
    >>> elastic_net(2.0, 0.25)
    Penalty(l1=0.5, l2=1.5, bound=inf)
    """
    if not 0.0 <= l1_ratio <= 1.0:
        raise ValueError("l1_ratio lies between 0 and 1")
    return Penalty(l1=alpha * l1_ratio, l2=alpha * (1.0 - l1_ratio))


def box(bound: float) -> Penalty:
    """Return the constraint ``|w_j| <= bound``.

    Examples
    --------
    >>> box(3.0).name
    'box'
    """
    return Penalty(bound=bound)


PENALTIES: dict[str, MakePenalty] = {"l1": lasso, "l2": ridge, "box": box}


def register_penalty(name: str, make: Callable[[float], Separable]) -> None:
    """Make a penalty known by its name, to `colonnade fit` and to the estimators.

    Privacy: a penalty sees coefficients, which are functions of releases, and never a row.

    Parameters
    ----------
    make
        From a strength, positive and finite, to the penalty in the users' units.

    Raises
    ------
    ValueError
        If the name is taken, or if at public points ``prox`` is not the minimum of its definition.

    Examples
    --------
    >>> import numpy as np
    >>> class NonNegative:  # the strength does not matter
    ...     def value(self, coef):
    ...         return np.where(coef < -1e-9, np.inf, 0.0)
    ...     def prox(self, point, step):
    ...         return np.maximum(point, 0.0)
    >>> register_penalty("doc_positive", lambda strength: NonNegative())
    >>> make_penalty("doc_positive", 1.0)
    CustomPenalty(name='doc_positive', strength=1.0, width=1.0)
    >>> del PENALTIES["doc_positive"]
    """
    for strength in (0.1, 1.0):
        _check(name, make(strength))

    def made(strength: float) -> CustomPenalty:
        if not (math.isfinite(strength) and strength > 0.0):
            raise ValueError("the strength of a penalty is finite and positive")
        return CustomPenalty(name, float(strength), make(strength))

    add_entry(PENALTIES, "penalty", name, made)


def make_penalty(name: str, strength: float) -> AnyPenalty:
    """Return the penalty of a name and a strength.

    Examples
    --------
    >>> make_penalty("l2", 0.5) == ridge(0.5)
    True
    """
    return find_entry(PENALTIES, "penalty", name)(strength)


def _check(name: str, penalty: Separable) -> None:
    """Raise `ValueError` unless the proximal points minimise their definition on a public grid."""
    line = np.linspace(-4.0, 4.0, 161)
    for step in (0.05, 0.5):
        found = np.asarray(penalty.prox(line, np.full(line.size, step)), np.float64)
        if found.shape != line.shape or not np.isfinite(found).all():
            raise ValueError(f"a proximal point of the penalty {name!r} is not finite")
        reached = penalty.value(found) + (found - line) ** 2 / (2.0 * step)
        others = penalty.value(line) + (line - line[:, None]) ** 2 / (2.0 * step)
        if (reached > others.min(axis=1) + 1e-9).any():
            raise ValueError(f"prox of the penalty {name!r} does not minimise its definition")
