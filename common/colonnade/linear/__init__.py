"""Linear models: losses, penalties, kernels and solutions from a Gram matrix."""

from colonnade.linear.losses import (
    HINGE,
    LOGISTIC,
    LOSSES,
    SQUARED,
    Loss,
    find_loss,
    register_loss,
)
from colonnade.linear.penalties import (
    PENALTIES,
    CustomPenalty,
    Penalty,
    Separable,
    make_penalty,
    register_penalty,
)

__all__ = [
    "HINGE",
    "LOGISTIC",
    "LOSSES",
    "PENALTIES",
    "SQUARED",
    "CustomPenalty",
    "Loss",
    "Penalty",
    "Separable",
    "find_loss",
    "make_penalty",
    "register_loss",
    "register_penalty",
]
