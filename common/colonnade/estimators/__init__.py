"""Private linear models for scikit-learn: the public face of the single-site solvers."""

from colonnade.estimators.base import SpendWarning
from colonnade.estimators.linear import (
    PrivateElasticNet,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateRidge,
)
from colonnade.solvers.claims import Claim

__all__ = [
    "Claim",
    "PrivateElasticNet",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "SpendWarning",
]
