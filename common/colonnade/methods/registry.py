"""The methods that this program knows, by kind.

A method from outside is registered before a job of its kind is submitted, at the coordinator and at
every party: its `Method` here, and its two sides in their own registries.
"""

from typing import Any

from colonnade.core.errors import BadMessage
from colonnade.methods.admm.method import ADMM
from colonnade.methods.alignment.method import ALIGNMENT
from colonnade.methods.base import Method
from colonnade.methods.evaluation.method import EVALUATION
from colonnade.methods.frank_wolfe.method import FRANK_WOLFE
from colonnade.methods.moments.method import MOMENTS
from colonnade.methods.prediction.method import PREDICTION
from colonnade.methods.sealed.method import SEALED_METHOD

_METHODS: dict[str, Method[Any]] = {}


def register(method: Method[Any]) -> None:
    """Make a method known; a kind has one meaning."""
    if _METHODS.setdefault(method.kind, method) is not method:
        raise ValueError(f"there is another method of kind {method.kind!r}")


def method_of(kind: str) -> Method[Any]:
    """Return the method of ``kind``; `BadMessage` if this program does not know it."""
    if kind not in _METHODS:
        raise BadMessage(f"this program has no method of that kind; it knows {', '.join(kinds())}")
    return _METHODS[kind]


def kinds() -> tuple[str, ...]:
    """Return the kinds that are known, in the order in which they were registered."""
    return tuple(_METHODS)


register(FRANK_WOLFE)
register(MOMENTS)
register(SEALED_METHOD)
register(ADMM)
register(ALIGNMENT)
register(PREDICTION)
register(EVALUATION)
