"""Private linear models for scikit-learn: the public face of the single-site solvers.

Examples
--------
>>> import numpy as np
>>> from colonnade.estimators import PrivateRidge
>>> X = np.random.default_rng(0).uniform(0.0, 1.0, (5000, 2))
>>> model = PrivateRidge(epsilon=1.0, bounds=(0.0, 1.0), y_bounds=(0.0, 3.0))
>>> model.fit(X, X @ [1.0, 2.0]).privacy_.private
True
"""

from colonnade.estimators.base import SpendWarning
from colonnade.estimators.classification import PrivateLinearSVC, PrivateLogisticRegression
from colonnade.estimators.generic import PrivateLinearClassifier, PrivateLinearRegressor
from colonnade.estimators.pipelines import (
    DataDependentStepWarning,
    PrivatePipeline,
    data_dependent_steps,
    make_private_pipeline,
    privacy_of,
)
from colonnade.estimators.regression import PrivateElasticNet, PrivateLasso, PrivateRidge
from colonnade.estimators.scaling import PrivateScaler
from colonnade.solvers.claims import Claim, compose_claims

__all__ = [
    "Claim",
    "DataDependentStepWarning",
    "PrivateElasticNet",
    "PrivateLasso",
    "PrivateLinearClassifier",
    "PrivateLinearRegressor",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivatePipeline",
    "PrivateRidge",
    "PrivateScaler",
    "SpendWarning",
    "compose_claims",
    "data_dependent_steps",
    "make_private_pipeline",
    "privacy_of",
]
