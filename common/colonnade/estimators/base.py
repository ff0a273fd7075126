"""The base of private estimators: parameters, bounds, validation, a warning about repeated fits."""

# ruff: noqa: N803, N806 - X is what scikit-learn calls it

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import Bounds
from colonnade.estimators.bounds import Declared, clip_to, read_bounds
from colonnade.estimators.tables import make_table
from colonnade.solvers.claims import Claim
from colonnade.solvers.fit import Fitted, NoiseName, Objective, fit_table, resolve_fit
from colonnade.solvers.registry import Solver, make_solver
from colonnade.solvers.statistics import GramStatistics

FORMATS: dict[str, Any] = {"accept_sparse": ("csc", "csr"), "dtype": np.float64}


class SpendWarning(UserWarning):
    """Several copies of a private estimator are fitted; each spends its own budget."""


@dataclass(eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """The parameters of every private estimator, and its claim after ``fit``: ``privacy_``."""

    _: KW_ONLY
    epsilon: float = 1.0
    delta: float | None = None
    bounds: Declared | None = None
    noise: NoiseName = "exact"
    random_state: int | None = None
    privacy_: Claim = field(init=False)

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy that knows how many there are: a search makes many."""
        parameters = self.get_params(deep=False)
        copy = type(self)(**{name: clone(part, safe=False) for name, part in parameters.items()})
        self._n_copies = getattr(self, "_n_copies", 0) + 1
        copy._copy_number = self._n_copies  # noqa: SLF001 - of the same class
        return copy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.noise == "exact"
        return tags

    def _begin_fit(self, fit_params: Mapping[str, Any]) -> None:
        """Refuse what a private fit cannot take, and warn if it is one of many."""
        for name, value in fit_params.items():
            if name == "sample_weight" and value is not None:
                raise ValueError(
                    "sample_weight is not supported: a weight is data about its row, so a private "
                    "fit would have to bound the weights and add noise in proportion to the "
                    "largest; fit without weights"
                )
            if name != "sample_weight":
                raise TypeError(f"fit() got an unexpected keyword argument {name!r}")
        if (number := getattr(self, "_copy_number", 0)) > 1 and self.noise == "exact":
            warnings.warn(
                f"this is copy {number} of one {type(self).__name__}, as a search or "
                "cross-validation makes them: every fit spends its own epsilon and on the same "
                f"rows they add up, so far to about {number} times {self.epsilon:g}",
                SpendWarning,
                stacklevel=3,
            )

    def _read_bounds(self, n_features: int) -> tuple[Bounds, ...]:
        names = getattr(self, "feature_names_in_", None)
        return read_bounds(self.bounds, n_features, names=names)


@dataclass(eq=False, repr=False)
class PrivateLinear(PrivateEstimator):
    """A linear model: parameters of the solver, the fit and the scores."""

    _: KW_ONLY
    solver: str | Solver = "gram"
    fit_intercept: bool = True
    statistics_: list[GramStatistics] = field(init=False)
    """Of the solver ``gram``, for each problem: L1 path, intervals, other penalties, all free."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _begin_fit(self, fit_params: Mapping[str, Any]) -> None:
        """Warn of a pipeline's steps that learn without noise, too."""
        # It imports this module.
        from colonnade.estimators.pipelines import warn_of_outer_pipeline  # noqa: PLC0415

        super()._begin_fit(fit_params)
        if self.noise == "exact":
            warn_of_outer_pipeline()

    def _solve(
        self,
        X: Any,
        labels: Iterable[FloatArray],
        objective: Objective,
        *,
        n_problems: int = 1,
        y_bounds: Bounds | None = None,
    ) -> list[Fitted]:
        """Solve one problem for each label, all on the same rows and under one budget."""
        solver = make_solver(self.solver)
        remaining = iter(labels)
        table = make_table(
            X,
            next(remaining),
            self._read_bounds(X.shape[1]),
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
            n_problems=n_problems,
        )
        seed = self.random_state or 0
        fitted = [fit_table(table, resolved, seed=seed)]
        for place, label in enumerate(remaining, start=1):
            fitted.append(fit_table(replace(table, label=label), resolved, seed=seed + place))
        self.privacy_ = resolved.claim
        self.statistics_ = [each.statistics for each in fitted if each.statistics is not None]
        self.n_iter_ = resolved.steps
        self.bounds_ = (
            np.array([bound.low for bound in table.bounds]),
            np.array([bound.high for bound in table.bounds]),
        )
        return fitted

    def _scores(self, X: Any) -> FloatArray:
        """Return the scores of each row, its values clipped to the bounds as in the fit."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        X = clip_to(X, *self.bounds_)
        scores: FloatArray = safe_sparse_dot(X, np.atleast_2d(self.coef_).T, dense_output=True)
        scores = scores + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores
