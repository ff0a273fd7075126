"""Check the numbers that a solver is made with."""

import math


def check_positive(**settings: float) -> None:
    """Raise `ValueError` unless every setting is finite and above zero."""
    for name, value in settings.items():
        if not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} must be finite and positive")


def check_not_negative(**settings: float) -> None:
    """Raise `ValueError` unless every setting is finite and not below zero: 0 is to be chosen."""
    for name, value in settings.items():
        if not 0.0 <= value < math.inf:
            raise ValueError(f"{name} must be finite and not negative")


def check_one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    """Raise `ValueError` unless a setting in words is a known one."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}")
