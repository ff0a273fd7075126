"""The compiler options of every kernel."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def njit(kernel: Callable[P, R]) -> Callable[P, R]:
    """Compile ``kernel`` with its result cached on disk and the interpreter lock released.

    The undecorated function stays reachable as ``kernel.py_func``, which tests compare against.
    """
    compiled: Callable[P, R] = numba.njit(cache=True, nogil=True)(kernel)
    return compiled
