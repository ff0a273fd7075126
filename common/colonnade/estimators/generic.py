"""Linear models of any registered loss and penalty, as scikit-learn's ``SGDRegressor`` is."""

# ruff: noqa: N803 - X is what scikit-learn calls it

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.utils.metaestimators import available_if

from colonnade.core.arrays import FloatArray
from colonnade.estimators.classification import PrivateClassification
from colonnade.estimators.regression import PrivateRegression
from colonnade.linear.losses import Loss, find_loss
from colonnade.linear.penalties import make_penalty, no_penalty
from colonnade.solvers.fit import Objective
from colonnade.solvers.registry import Solver


@dataclass(eq=False, repr=False)
class PrivateLinearRegressor(PrivateRegression):
    """Minimise the mean of a loss plus a penalty, both known by name or registered.

    Parameters that are not listed, and the attributes, are those of `PrivateLasso`.

    Parameters
    ----------
    loss
        The name of a registered loss for labels that are numbers, or a `Loss`. It sees labels
        scaled by ``y_bounds`` to ``[-1, 1]``.
    penalty, alpha
        The name of a registered penalty and its strength; None for no penalty.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 1.0, 400)[:, None]
    >>> model = PrivateLinearRegressor(bounds=(0.0, 1.0), y_bounds=(0.0, 2.0), noise="off")
    >>> model.fit(X, 2.0 * X[:, 0]).predict([[0.5]]).round(2)
    array([1.])
    """

    loss: str | Loss = "squared"
    _: KW_ONLY
    penalty: str | None = None
    alpha: float = 1e-4
    solver: str | Solver = "cd"

    def _objective(self, n_rows: int) -> Objective:  # noqa: ARG002
        objective = _objective(self.loss, self.penalty, self.alpha)
        if objective.loss.classifies:
            raise ValueError(f"the loss {objective.loss.name!r} is for classes, not for numbers")
        return objective


def _estimates_probabilities(model: "PrivateLinearClassifier") -> bool:
    return find_loss(model.loss).response == "logistic"


@dataclass(eq=False, repr=False)
class PrivateLinearClassifier(PrivateClassification):
    """Classify by the sign of a score; any registered loss and penalty.

    Parameters that are not listed, and the attributes, are those of `PrivateLogisticRegression`.

    Parameters
    ----------
    loss
        The name of a registered loss for classes, or a `Loss`. ``predict_proba`` exists where its
        response is ``"logistic"``.
    penalty, alpha
        The name of a registered penalty and its strength; None for no penalty.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1.0, 1.0, 400)[:, None]
    >>> model = PrivateLinearClassifier("hinge", bounds=(-1.0, 1.0), noise="off")
    >>> model.fit(X, X[:, 0] > 0.0).predict([[-0.5], [0.5]])
    array([False,  True])
    >>> hasattr(model, "predict_proba")
    False
    """

    loss: str | Loss = "logistic"
    _: KW_ONLY
    penalty: str | None = None
    alpha: float = 1e-4
    solver: str | Solver = "sgd"

    def _objective(self, n_rows: int) -> Objective:  # noqa: ARG002
        objective = _objective(self.loss, self.penalty, self.alpha)
        if not objective.loss.classifies:
            raise ValueError(f"the loss {objective.loss.name!r} is for numbers, not for classes")
        return objective

    @available_if(_estimates_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class for each row."""
        return self._probabilities(X)


def _objective(loss: str | Loss, penalty: str | None, alpha: float) -> Objective:
    chosen = no_penalty() if penalty is None else make_penalty(penalty, alpha)
    return Objective(find_loss(loss), chosen)
