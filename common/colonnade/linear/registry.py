"""Named entries that other packages may add to: losses, penalties and solvers."""

import re
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def add_entry(registry: dict[str, T], kind: str, name: str, entry: T) -> None:
    """Add ``entry`` under ``name``, which appears in reports and on the command line.

    Raises
    ------
    ValueError
        If the name is malformed or already taken by another entry.

    Examples
    --------
    >>> shapes = {}
    >>> add_entry(shapes, "shape", "square", 4)
    >>> shapes
    {'square': 4}
    >>> add_entry(shapes, "shape", "square", 5)
    Traceback (most recent call last):
    ValueError: a shape called 'square' is already registered
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"a {kind} is named by 1 to 40 lower-case letters, digits and underscores, "
            "the first of them a letter"
        )
    if registry.get(name, entry) is not entry:
        raise ValueError(f"a {kind} called {name!r} is already registered")
    registry[name] = entry


def find_entry(registry: Mapping[str, T], kind: str, name: str) -> T:
    """Return the entry called ``name``, or raise `ValueError` naming those there are.

    Examples
    --------
    >>> find_entry({"square": 4}, "shape", "circle")
    Traceback (most recent call last):
    ValueError: no shape is called 'circle'; there are square
    """
    if name not in registry:
        raise ValueError(f"no {kind} is called {name!r}; there are {', '.join(sorted(registry))}")
    return registry[name]
