"""What the estimators share: validation, bounds, the fit, and a warning about searches."""

# ruff: noqa: N803, N806 - X and C are what scikit-learn calls them

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from colonnade.core.arrays import AnyArray, FloatArray
from colonnade.core.fixedpoint import Bounds
from colonnade.estimators.bounds import Declared, check_declared, clip_to, read_bounds
from colonnade.estimators.tables import make_table
from colonnade.linear.losses import SQUARED, Loss
from colonnade.linear.penalties import Penalty, elastic_net
from colonnade.solvers.fit import Fitted, NoiseName, Objective, fit_table, resolve_fit
from colonnade.solvers.registry import Solver, make_solver

Pair = tuple[Any, Any]
_FORMATS: dict[str, Any] = {"accept_sparse": ("csc", "csr"), "dtype": np.float64}


class SpendWarning(UserWarning):
    """Several copies of a private estimator are fitted; each spends its own budget."""


class PrivateLinear(BaseEstimator):  # type: ignore[misc]
    """What all of them share; the parameters are set by the classes below."""

    epsilon: float
    delta: float | None
    bounds: Declared | None
    solver: str | Solver
    fit_intercept: bool
    noise: NoiseName
    random_state: int | None

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy that knows how many there are: a search makes many."""
        parameters = self.get_params(deep=False)
        copy = type(self)(**{name: clone(part, safe=False) for name, part in parameters.items()})
        self._n_copies = getattr(self, "_n_copies", 0) + 1
        copy._copy_number = self._n_copies  # noqa: SLF001 - of the same class
        return copy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.noise == "exact"
        return tags

    def _warn_of_copies(self) -> None:
        if (number := getattr(self, "_copy_number", 0)) > 1 and self.noise == "exact":
            warnings.warn(
                f"this is copy {number} of one {type(self).__name__}, as a search or "
                "cross-validation makes them: every fit spends its own epsilon and on the same "
                f"rows they add up, so far to about {number} times {self.epsilon:g}",
                SpendWarning,
                stacklevel=4,
            )

    def _validated(self, X: Any, y: Any, *, numeric: bool) -> tuple[Any, AnyArray]:
        self._warn_of_copies()
        X, y = validate_data(self, X, y, **_FORMATS, y_numeric=numeric)
        return X, y

    def _fit(self, X: Any, y: FloatArray, objective: Objective, y_bounds: Bounds | None) -> Fitted:
        solver = make_solver(self.solver)
        table = make_table(
            X,
            y,
            read_bounds(self.bounds, X.shape[1], names=getattr(self, "feature_names_in_", None)),
            label_bounds=y_bounds,
            intercept=self.fit_intercept,
            row_wise=solver.reads_rows,
        )
        resolved = resolve_fit(
            objective,
            solver,
            table.design.shape,
            epsilon=self.epsilon,
            delta=self.delta,
            noise=self.noise,
        )
        fitted = fit_table(table, resolved, seed=self.random_state)
        self.privacy_ = fitted.claim
        self.n_iter_ = resolved.steps
        self.bounds_ = (
            np.array([bound.low for bound in table.bounds]),
            np.array([bound.high for bound in table.bounds]),
        )
        return fitted

    def _scores(self, X: Any) -> FloatArray:
        """Return the score of each row, its values clipped to the bounds as in the fit."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        X = clip_to(X, *self.bounds_)
        scores: FloatArray = safe_sparse_dot(X, np.ravel(self.coef_), dense_output=True)
        return scores + float(np.ravel(self.intercept_)[0])


class PrivateRegressor(RegressorMixin, PrivateLinear):  # type: ignore[misc]
    """Squared error, in the users' units."""

    y_bounds: Pair | None

    def _fit_regression(self, X: Any, y: Any, *, l1: float, l2: float, per_row: bool) -> Self:
        X, y = self._validated(X, y, numeric=True)
        check_declared(bounds=self.bounds, y_bounds=self.y_bounds)
        (y_bounds,) = read_bounds(self.y_bounds, 1, name="y_bounds")
        objective = Objective(SQUARED, Penalty(l1, l2 / X.shape[0] if per_row else l2))
        fitted = self._fit(X, np.asarray(y, np.float64), objective, y_bounds)
        self.coef_, self.intercept_ = fitted.coef, fitted.intercept
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the predicted label of each row."""
        return self._scores(X)


class PrivateClassifier(ClassifierMixin, PrivateLinear):  # type: ignore[misc]
    """Two classes."""

    classes: Pair | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _fit_classes(self, X: Any, y: Any, loss: Loss, *, C: float, l1_ratio: float) -> Self:
        if not C > 0.0:
            raise ValueError("C must be positive")
        check_declared(bounds=self.bounds)
        if self.classes is None:
            X, sign = self._found_classes(X, y)
        else:
            X, sign = self._declared_classes(X, y)
        alpha = 1.0 / (C * X.shape[0])
        objective = Objective(loss, elastic_net(alpha, l1_ratio))
        fitted = self._fit(X, sign, objective, None)
        self.coef_, self.intercept_ = fitted.coef[None, :], np.array([fitted.intercept])
        return self

    def _found_classes(self, X: Any, y: Any) -> tuple[Any, FloatArray]:
        """Take the two classes from the rows: who fits declares them public."""
        X, y = self._validated(X, y, numeric=False)
        check_classification_targets(y)
        if type_of_target(y) == "multiclass":
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}."
            )
        self.classes_ = np.unique(y)
        if self.classes_.size < 2:
            raise ValueError(
                "two classes are needed and the label has one class; "
                "declare them: classes=(negative, positive)"
            )
        return X, np.where(y == self.classes_[1], 1.0, -1.0)

    def _declared_classes(self, X: Any, y: Any) -> tuple[Any, FloatArray]:
        """Take the declared classes.

        Privacy: no label is refused, for that would tell of one row. Whatever is not the positive
        class counts as the negative one, a missing label too.
        """
        declared = np.asarray(self.classes)
        if declared.shape != (2,) or declared[0] == declared[1]:
            raise ValueError("classes must be a pair (negative, positive) of different values")
        self._warn_of_copies()
        X = validate_data(self, X, **_FORMATS)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(X, labels)
        positive = declared[1].item()
        self.classes_ = declared
        return X, np.array([1.0 if label == positive else -1.0 for label in labels.tolist()])

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of each row; positive for the second class."""
        return self._scores(X)

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row."""
        scores = self._scores(X)
        classes: AnyArray = self.classes_[(scores > 0.0).astype(int)]
        return classes
