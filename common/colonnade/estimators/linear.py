"""Private linear models with scikit-learn's interface.

Every estimator takes ``epsilon``, ``delta`` and ``bounds``, and after ``fit`` has ``coef_``,
``intercept_`` and ``privacy_``; ``bounds_``, two arrays, is what values were clipped to (wider than
declared where zero must stay zero), and what predictions clip to. A fit spends its epsilon anew:
fitting twice on the same rows, as a search or cross-validation does, costs the sum.

What is public by declaration: the number of rows and of features, the bounds, which two classes
there are, and that no value is missing (a NaN among the features, or in a label of numbers, is an
error).
"""

# ruff: noqa: N803 - X and C are what scikit-learn calls them

from typing import Any, Self

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.estimators.base import Pair, PrivateClassifier, PrivateRegressor
from colonnade.estimators.bounds import Declared
from colonnade.linear.losses import HINGE, LOGISTIC
from colonnade.solvers.fit import NoiseName
from colonnade.solvers.frank_wolfe import FrankWolfe
from colonnade.solvers.registry import Solver, make_solver


class PrivateLasso(PrivateRegressor):
    """Least squares with an l1 penalty: ``|y - Xw|**2 / (2 n) + alpha |w|_1``.

    Parameters
    ----------
    alpha
        Strength of the penalty, as in scikit-learn's ``Lasso``. The solver ``"frank_wolfe"``
        constrains ``|w|_1`` (on features scaled to ``[-1, 1]``) to its radius instead; the other
        estimators take it without a penalty only (``alpha=0``, ``C=inf``).
    epsilon, delta
        The guarantee of one fit, for one row replaced; delta ``min(1e-6, 1 / (10 n))`` if None.
    bounds, y_bounds
        Public pairs ``(low, high)``, numbers or one for each feature. Values outside are clipped,
        by ``fit`` and by ``predict`` alike; noise is proportional to the width. There is no
        default. Bounds of features may also be named: a pair of Series or dicts by feature, a dict
        of pairs, or a DataFrame with the columns ``low`` and ``high`` and a row for each feature.
        They are matched with the columns of ``X`` by name; arrays go by position.
    solver
        A name, or a solver with settings of its own, such as ``CoordinateDescent(passes=5)``.
    fit_intercept
        Without an intercept bounds are widened to be symmetric about zero.
    noise
        ``"exact"``; or, for experiments that are not private, ``"fast"`` (seeded by
        ``random_state``) and ``"off"``.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        bounds: Declared | None = None,
        y_bounds: Pair | None = None,
        solver: str | Solver = "cd",
        fit_intercept: bool = True,
        noise: NoiseName = "exact",
        random_state: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit, spending ``epsilon``."""
        # A radius takes the penalty's place; elsewhere Frank-Wolfe refuses a penalty.
        l1 = 0.0 if isinstance(make_solver(self.solver), FrankWolfe) else self.alpha
        return self._fit_regression(X, y, l1=l1, l2=0.0, per_row=False)


class PrivateElasticNet(PrivateRegressor):
    """Least squares with both penalties, ``alpha`` and ``l1_ratio`` as in scikit-learn.

    The other parameters are those of `PrivateLasso`.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        epsilon: float = 1.0,
        delta: float | None = None,
        bounds: Declared | None = None,
        y_bounds: Pair | None = None,
        solver: str | Solver = "cd",
        fit_intercept: bool = True,
        noise: NoiseName = "exact",
        random_state: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit, spending ``epsilon``."""
        l1, l2 = self.alpha * self.l1_ratio, self.alpha * (1.0 - self.l1_ratio)
        return self._fit_regression(X, y, l1=l1, l2=l2, per_row=False)


class PrivateRidge(PrivateRegressor):
    """Least squares with an l2 penalty: ``|y - Xw|**2 + alpha |w|**2``, as in scikit-learn.

    The other parameters are those of `PrivateLasso`.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        bounds: Declared | None = None,
        y_bounds: Pair | None = None,
        solver: str | Solver = "cd",
        fit_intercept: bool = True,
        noise: NoiseName = "exact",
        random_state: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit, spending ``epsilon``."""
        return self._fit_regression(X, y, l1=0.0, l2=self.alpha, per_row=True)


class PrivateLogisticRegression(PrivateClassifier):
    """Logistic regression of two classes, ``C`` and ``l1_ratio`` as in scikit-learn.

    The other parameters are those of `PrivateLasso`; the label needs no bounds.

    Privacy: ``classes``, a pair (negative, positive), are public values. With them every label is
    accepted: what is not the positive one counts as negative, and one class alone is fitted like
    two. Without them they are taken from the rows, as scikit-learn does, and fitting declares them
    public: a class that one row alone has would be told by ``classes_``, and a label with one class
    or three is an error that depends on the rows.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1_ratio: float = 0.0,
        epsilon: float = 1.0,
        delta: float | None = None,
        bounds: Declared | None = None,
        classes: Pair | None = None,
        solver: str | Solver = "cd",
        fit_intercept: bool = True,
        noise: NoiseName = "exact",
        random_state: int | None = None,
    ) -> None:
        self.C = C
        self.l1_ratio = l1_ratio
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit, spending ``epsilon``."""
        return self._fit_classes(X, y, LOGISTIC, C=self.C, l1_ratio=self.l1_ratio)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of either class for each row."""
        second = 0.5 * (1.0 + np.tanh(0.5 * self._scores(X)))
        return np.column_stack([1.0 - second, second])

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of the probability of either class for each row."""
        scores = self._scores(X)
        return -np.logaddexp(0.0, np.column_stack([scores, -scores]))


class PrivateLinearSVC(PrivateClassifier):
    """A linear support vector machine: hinge loss and an l2 penalty, ``C`` as in scikit-learn.

    The intercept is not penalised, unlike scikit-learn's. The hinge loss has no curvature, so the
    solvers are ``"sgd"``, ``"admm"``, and without an intercept ``"dual"``. The other parameters
    are those of `PrivateLasso`, and ``classes`` those of `PrivateLogisticRegression`, with what is
    said there about privacy; the label needs no bounds.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        bounds: Declared | None = None,
        classes: Pair | None = None,
        solver: str | Solver = "sgd",
        fit_intercept: bool = True,
        noise: NoiseName = "exact",
        random_state: int | None = None,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit, spending ``epsilon``."""
        return self._fit_classes(X, y, HINGE, C=self.C, l1_ratio=0.0)
