"""Check the hyperparameters that a solver is made with."""

import math
from typing import TypeVar

T = TypeVar("T")


def check_positive(**hyperparameters: float | None) -> None:
    """Raise `ValueError` unless every one is finite and above zero; None is a default to come."""
    for name, value in hyperparameters.items():
        if value is not None and not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} must be finite and positive")


def check_not_negative(**hyperparameters: float) -> None:
    """Raise `ValueError` unless every one is finite and not below zero."""
    for name, value in hyperparameters.items():
        if not 0.0 <= value < math.inf:
            raise ValueError(f"{name} must be finite and not negative")


def chosen(value: T | None) -> T:
    """Return a hyperparameter; `ValueError` if its default was not resolved yet."""
    if value is None:
        raise ValueError("a hyperparameter is None: resolve the defaults first, with_defaults()")
    return value


def check_one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    """Raise `ValueError` unless a hyperparameter in words is a known one."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}")
