"""Private linear regressions with scikit-learn's interface.

Every estimator takes ``epsilon``, ``delta`` and ``bounds``, and after ``fit`` has ``coef_``,
``intercept_``, ``privacy_`` and ``n_iter_``; ``bounds_``, two arrays, is what values were clipped
to (wider than declared where zero must stay zero), and what predictions clip to. A fit spends its
epsilon anew: fitting twice on the same rows, as a search or cross-validation does, costs the sum.

What is public by declaration: the number of rows and of features, the bounds, and that no value is
missing (a NaN is an error).
"""

# ruff: noqa: N803, N806 - X is what scikit-learn calls it

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from colonnade.core.arrays import FloatArray
from colonnade.estimators.base import FORMATS, PrivateLinear
from colonnade.estimators.bounds import check_declared, read_bounds
from colonnade.linear.losses import SQUARED
from colonnade.linear.penalties import elastic_net, lasso, no_penalty, ridge
from colonnade.solvers.algorithms.frank_wolfe import FrankWolfe
from colonnade.solvers.fit import Objective
from colonnade.solvers.registry import make_solver

Pair = tuple[Any, Any]


@dataclass(eq=False, repr=False)
class PrivateRegression(RegressorMixin, PrivateLinear, ABC):  # type: ignore[misc]
    """What the regressions share; each says what it minimises."""

    _: KW_ONLY
    y_bounds: Pair | None = None

    @abstractmethod
    def _objective(self, n_rows: int) -> Objective:
        """Return what is minimised over ``n_rows`` rows."""

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit, spending ``epsilon``.

        Parameters
        ----------
        X
            Shape ``(n_rows, n_features)``: an array, a data frame or a sparse matrix.
        y
            Shape ``(n_rows,)``, numbers.
        **fit_params
            None is taken; ``sample_weight`` is refused with the reason.
        """
        self._begin_fit(fit_params)
        X, y = validate_data(self, X, y, **FORMATS, y_numeric=True)
        check_declared(bounds=self.bounds, y_bounds=self.y_bounds)
        (y_bounds,) = read_bounds(self.y_bounds, 1, name="y_bounds")
        labels = [np.asarray(y, np.float64)]
        (fitted,) = self._solve(X, labels, self._objective(X.shape[0]), y_bounds=y_bounds)
        self.coef_, self.intercept_ = fitted.coef, fitted.intercept
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the predicted label of each row."""
        return self._scores(X)


@dataclass(eq=False, repr=False)
class PrivateLasso(PrivateRegression):
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
        of pairs, or a DataFrame with the columns ``low`` and ``high`` and a row for each feature,
        or the other way round. They are matched with the columns of ``X`` by name; arrays go by
        position.
    solver
        The name of a registered solver, or a solver with hyperparameters of its own, such as
        ``CoordinateDescent(passes=5)``.
    fit_intercept
        Without an intercept bounds are widened to be symmetric about zero.
    noise
        ``"exact"``; or, for experiments that are not private, ``"fast"`` (seeded by
        ``random_state``) and ``"off"``.

    Attributes
    ----------
    coef_, intercept_
        In the users' units.
    privacy_
        The guarantee, a `Claim`.
    n_iter_
        Steps of the solver.
    bounds_
        Two arrays: what values are clipped to.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Wang (2018). Revisiting differentially private linear regression: optimal and adaptive
    prediction and estimation in unbounded domain. UAI. (The default solver, ``"gram"``.)

    Mangold, Bellet, Salmon and Tommasi (2022). Differentially private coordinate descent for
    composite empirical risk minimization. ICML. (The solver ``"cd"``.)

    Examples
    --------
    >>> import numpy as np
    >>> draw = np.random.default_rng(0)
    >>> X = draw.uniform(0.0, 10.0, (5000, 3))
    >>> y = 2.0 * X[:, 0] + draw.normal(0.0, 1.0, 5000)
    >>> model = PrivateLasso(0.1, epsilon=2.0, bounds=(0.0, 10.0), y_bounds=(-5.0, 25.0))
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    >>> print(model.privacy_)
    epsilon 2 at delta 1e-06, one row replaced
    """

    alpha: float = 1.0

    def _objective(self, n_rows: int) -> Objective:  # noqa: ARG002
        # A radius takes the penalty's place; elsewhere Frank-Wolfe refuses a penalty.
        radius = isinstance(make_solver(self.solver), FrankWolfe)
        return Objective(SQUARED, no_penalty() if radius else lasso(self.alpha))


@dataclass(eq=False, repr=False)
class PrivateElasticNet(PrivateRegression):
    """Least squares with both penalties, ``alpha`` and ``l1_ratio`` as in scikit-learn.

    The other parameters are those of `PrivateLasso`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 1.0, 400)[:, None]
    >>> model = PrivateElasticNet(0.01, bounds=(0.0, 1.0), y_bounds=(0.0, 2.0), noise="off")
    >>> model.fit(X, 2.0 * X[:, 0]).predict([[0.0], [1.0]]).round(1)
    array([0.1, 1.9])
    """

    alpha: float = 1.0
    _: KW_ONLY
    l1_ratio: float = 0.5

    def _objective(self, n_rows: int) -> Objective:  # noqa: ARG002
        return Objective(SQUARED, elastic_net(self.alpha, self.l1_ratio))


@dataclass(eq=False, repr=False)
class PrivateRidge(PrivateRegression):
    """Least squares with an l2 penalty: ``|y - Xw|**2 + alpha |w|**2``, as in scikit-learn.

    The other parameters are those of `PrivateLasso`.

    Examples
    --------
    Bounds by the name of the column, in any order:

    >>> import numpy as np
    >>> import pandas as pd
    >>> draw = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": draw.uniform(0, 80, 2000), "dose": draw.uniform(0, 3, 2000)})
    >>> bounds = {"dose": (0.0, 3.0), "age": (0.0, 80.0)}
    >>> model = PrivateRidge(epsilon=2.0, bounds=bounds, y_bounds=(0.0, 100.0))
    >>> model = model.fit(frame, frame["age"] + 5.0 * frame["dose"])
    >>> model.feature_names_in_.tolist(), model.n_features_in_
    (['age', 'dose'], 2)
    """

    alpha: float = 1.0

    def _objective(self, n_rows: int) -> Objective:
        return Objective(SQUARED, ridge(self.alpha / n_rows))
