"""Private linear classifiers with scikit-learn's interface.

Two classes are one problem. More are one problem a class, that class against the rest, all on the
same rows: replacing a row may change what it adds to every one of them, so their costs add and each
gets an equal share of the budget in zCDP. Noise of a problem is then ``sqrt(n_classes)`` times that
of a single one.
"""

# ruff: noqa: N803, N806 - X and C are what scikit-learn calls them

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from colonnade.core.arrays import AnyArray, FloatArray
from colonnade.estimators.base import FORMATS, PrivateLinear
from colonnade.estimators.bounds import check_declared
from colonnade.linear.losses import HINGE, LOGISTIC
from colonnade.linear.penalties import elastic_net
from colonnade.solvers.fit import Objective
from colonnade.solvers.registry import Solver


@dataclass(eq=False, repr=False)
class PrivateClassification(ClassifierMixin, PrivateLinear, ABC):  # type: ignore[misc]
    """What the classifiers share; each says what it minimises."""

    _: KW_ONLY
    classes: Sequence[Any] | None = None

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
            Shape ``(n_rows,)``, classes.
        **fit_params
            None is taken; ``sample_weight`` is refused with the reason.
        """
        self._begin_fit(fit_params)
        check_declared(bounds=self.bounds)
        X, y = self._found(X, y) if self.classes is None else self._declared(X, y)
        # Of two classes the second one's score is enough: the first one's is its negative.
        scored = self.classes_[1:] if self.classes_.size == 2 else self.classes_
        labels = _signs(y, scored.tolist())
        objective = self._objective(X.shape[0])
        fitted = self._solve(X, labels, objective, n_problems=scored.size)
        self.coef_ = np.stack([each.coef for each in fitted])
        self.intercept_ = np.array([each.intercept for each in fitted])
        return self

    def _found(self, X: Any, y: Any) -> tuple[Any, list[Any]]:
        """Take the classes from the rows: who fits declares them public."""
        X, y = validate_data(self, X, y, **FORMATS)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if self.classes_.size < 2:
            raise ValueError(
                "two classes are needed and the label has one class; "
                "declare them: classes=(negative, positive)"
            )
        return X, y.tolist()

    def _declared(self, X: Any, y: Any) -> tuple[Any, list[Any]]:
        """Take the declared classes.

        Privacy: no label is refused, for that would reveal one row. What is no declared class, a
        missing label too, is a negative example of every problem.
        """
        declared = np.asarray(self.classes)
        if declared.ndim != 1 or not 2 <= declared.size == len(set(declared.tolist())):
            raise ValueError(
                "classes must be at least two different values, such as (negative, positive)"
            )
        X = validate_data(self, X, **FORMATS)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(X, labels)
        self.classes_ = declared
        return X, labels.tolist()

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores of each row: of two classes the second one's, else one a class."""
        return self._scores(X)

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row."""
        scores = self._scores(X)
        best = (scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        classes: AnyArray = self.classes_[best]
        return classes

    def _probabilities(self, X: Any) -> FloatArray:
        """Return logistic probabilities; of more than two classes divided by their sum."""
        scores = self._scores(X)
        found = 0.5 * (1.0 + np.tanh(0.5 * scores))
        if scores.ndim == 1:
            return np.column_stack([1.0 - found, found])
        # Where every class is all but ruled out, they are taken as equally likely.
        found = np.maximum(found, np.finfo(np.float64).tiny)
        probabilities: FloatArray = found / found.sum(axis=1, keepdims=True)
        return probabilities


def _signs(labels: list[Any], scored: list[Any]) -> Iterator[FloatArray]:
    """Yield the labels of each problem: +1 for its class and -1 for the rest."""
    for positive in scored:
        yield np.array([1.0 if label == positive else -1.0 for label in labels])


@dataclass(eq=False, repr=False)
class PrivateLogisticRegression(PrivateClassification):
    """Logistic regression, ``C`` and ``l1_ratio`` as in scikit-learn.

    The other parameters are those of `PrivateLasso`; the label needs no bounds. More than two
    classes are fitted one against the rest, under one budget (see the module).

    Privacy: ``classes``, a sequence whose first two are (negative, positive) if there are two, are
    public values. With them every label is accepted: what is none of them counts as negative, and
    one class alone is fitted like all. Without them they are taken from the rows, as scikit-learn
    does, and fitting declares them public: a class that one row alone has would be revealed by
    ``classes_``, and a label with one class is an error that depends on the rows.

    Attributes
    ----------
    classes_
        Shape ``(n_classes,)``.
    coef_, intercept_
        In the users' units, shapes ``(n_problems, n_features)`` and ``(n_problems,)``: one problem
        for two classes, else one a class.
    privacy_
        The guarantee of all problems together.
    n_iter_
        Steps of the solver for each problem.

    References
    ----------
    Bun and Steinke (2016). Concentrated differential privacy: simplifications, extensions, and
    lower bounds. TCC. (Costs in zCDP add.)

    Examples
    --------
    >>> import numpy as np
    >>> draw = np.random.default_rng(0)
    >>> X = draw.uniform(-1.0, 1.0, (6000, 2))
    >>> y = np.array(["low", "mid", "high"])[np.digitize(X[:, 0], [-0.4, 0.4])]
    >>> model = PrivateLogisticRegression(
    ...     epsilon=4.0, bounds=(-1.0, 1.0), classes=["low", "mid", "high"]
    ... )
    >>> model.fit(X, y).coef_.shape
    (3, 2)
    >>> print(model.privacy_)
    epsilon 4 at delta 1e-06, one row replaced
    >>> model.predict_proba(X[:5]).sum(axis=1).round(9)
    array([1., 1., 1., 1., 1.])
    """

    C: float = 1.0
    _: KW_ONLY
    l1_ratio: float = 0.0

    def _objective(self, n_rows: int) -> Objective:
        return Objective(LOGISTIC, elastic_net(_strength(self.C, n_rows), self.l1_ratio))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class for each row."""
        return self._probabilities(X)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of the probability of every class for each row."""
        scores = self._scores(X)
        if scores.ndim == 2:
            return np.log(self._probabilities(X))
        return -np.logaddexp(0.0, np.column_stack([scores, -scores]))


@dataclass(eq=False, repr=False)
class PrivateLinearSVC(PrivateClassification):
    """A linear support vector machine: hinge loss and an l2 penalty, ``C`` as in scikit-learn.

    The intercept is not penalised, unlike scikit-learn's. The hinge loss has no curvature, so the
    solvers are ``"sgd"``, ``"admm"``, and without an intercept ``"dual"``. The other parameters
    are those of `PrivateLasso`, and ``classes`` those of `PrivateLogisticRegression`, with what is
    said there about privacy and about more than two classes; the label needs no bounds.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1.0, 1.0, 400)[:, None]
    >>> model = PrivateLinearSVC(bounds=(-1.0, 1.0), classes=("no", "yes"), noise="off")
    >>> model.fit(X, np.where(X[:, 0] > 0.0, "yes", "no")).predict([[-0.5], [0.5]])
    array(['no', 'yes'], dtype='<U3')
    """

    C: float = 1.0
    _: KW_ONLY
    solver: str | Solver = "sgd"

    def _objective(self, n_rows: int) -> Objective:
        return Objective(HINGE, elastic_net(_strength(self.C, n_rows), 0.0))


def _strength(C: float, n_rows: int) -> float:
    if not C > 0.0:
        raise ValueError("C must be positive")
    return 1.0 / (C * n_rows)
