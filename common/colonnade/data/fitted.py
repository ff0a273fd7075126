"""A fitted model as scikit-learn's pipelines and metrics expect one."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from colonnade.core.arrays import AnyArray, FloatArray
from colonnade.core.errors import BadInput
from colonnade.data.frames import is_frame
from colonnade.data.model import LinearModel


class FittedLinearModel(BaseEstimator):  # type: ignore[misc]
    """Predict as a `LinearModel` does; `FittedRegressor` and `FittedClassifier` are what is used.

    Tables with named columns are read by name. An array has all columns of the model, in the order
    of ``feature_names_in_``. Fitting changes nothing, as with scikit-learn's ``FrozenEstimator``:
    training happened in the federation.

    Parameters
    ----------
    model
        The fitted model.
    """

    def __init__(self, model: LinearModel) -> None:
        self.model = model

    @property
    def feature_names_in_(self) -> AnyArray:
        """The columns that an array has, in order."""
        return np.array([each.full_names[0] for each in self.model.inputs], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """How many columns an array has."""
        return len(self.model.inputs)

    @property
    def coef_(self) -> FloatArray:
        """Coefficients in the users' units; values outside their bounds are clipped first."""
        return np.array(self.model.coef)

    @property
    def intercept_(self) -> float:
        """Prediction, or score, at zero."""
        return self.model.intercept

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002, N803
        """Return the estimator as it is."""
        return self

    def _table(self, X: Any) -> Any:  # noqa: N803
        if is_frame(X):
            return X
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise BadInput(f"an array needs the model's {self.n_features_in_} columns, by name")
        return dict(zip(self.feature_names_in_, rows.T, strict=True))


class FittedRegressor(RegressorMixin, FittedLinearModel):  # type: ignore[misc]
    """A fitted model of a number."""

    def predict(self, X: Any) -> FloatArray:  # noqa: N803
        """Return a prediction for each row, in the label's unit."""
        return self.model.predict(self._table(X))


class FittedClassifier(ClassifierMixin, FittedLinearModel):  # type: ignore[misc]
    """A fitted model of two classes: the label's low and its high value."""

    @property
    def classes_(self) -> FloatArray:
        """The label's low and its high value."""
        return np.array([self.model.label.low, self.model.label.high])

    def decision_function(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the score of each row; above zero it is of the second class."""
        return self.model.decision_function(self._table(X))

    def predict(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the class of each row."""
        return self.classes_[(self.decision_function(X) > 0.0).astype(np.intp)]

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the probability of each class, for each row; a logistic model has them."""
        return self.model.predict_proba(self._table(X))


def fitted(model: LinearModel) -> FittedRegressor | FittedClassifier:
    """Return the estimator that predicts as ``model`` does."""
    return FittedRegressor(model) if model.loss == "squared" else FittedClassifier(model)
