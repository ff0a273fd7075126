"""The privacy guarantee of a pipeline: its private steps' claims composed, if no other learns.

A pipeline's output is a function of everything that its steps learned. A step that learns from the
rows without noise, such as scikit-learn's ``StandardScaler``, ``SimpleImputer`` or ``PCA``, leaks
through every prediction, and no noise of a later step repairs that. `PrivatePipeline` warns of it,
and so does a private model that is fitted as the last step of scikit-learn's own ``Pipeline``;
`privacy_of` looks at any pipeline afterwards.
"""

# ruff: noqa: N803 - X is what scikit-learn calls it

import inspect
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures
from sklearn.utils import get_tags

from colonnade.estimators.base import PrivateEstimator
from colonnade.solvers.claims import Claim, compose_claims


class DataDependentStepWarning(UserWarning):
    """A step learns from the rows without noise, so the pipeline has no guarantee."""


def data_dependent_steps(model: Any) -> tuple[str, ...]:
    """Return the names of the steps that learn from the rows without noise.

    A step is known to be harmless if it is private; if scikit-learn's tag ``requires_fit`` says
    that its ``fit`` learns nothing; if it is ``PolynomialFeatures``, which counts columns; or if it
    is an encoder whose categories are given. A ``FunctionTransformer`` learns nothing, but its
    function must treat every row by itself, which nobody can check. Everything else is named.

    Parameters
    ----------
    model
        A pipeline, a column transformer, a feature union or an estimator.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer, StandardScaler
    >>> from colonnade.estimators import PrivateRidge
    >>> data_dependent_steps(make_pipeline(StandardScaler(), PrivateRidge()))
    ('standardscaler',)
    >>> data_dependent_steps(make_pipeline(FunctionTransformer(), PrivateRidge()))
    ()
    """
    return tuple(name for name, step in _leaves(model) if not _harmless(step))


def privacy_of(model: Any) -> Claim:
    """Return what a fitted pipeline, or a fitted estimator, promises as a whole.

    Privacy: the claims of the private steps compose (`compose_claims`): each is a fit on the same
    rows, transformed row by row as earlier releases say. With a step that learns from the rows
    without noise nothing is promised: a `DataDependentStepWarning` names it, and the claim that is
    returned is not private.

    Raises
    ------
    ValueError
        If no step is private and fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from colonnade.estimators import PrivateRidge, PrivateScaler
    >>> draw = np.random.default_rng(0)
    >>> X = draw.uniform(0.0, 10.0, (1000, 2))
    >>> scaler = PrivateScaler(epsilon=0.5, bounds=(0.0, 10.0), clip=3.0)
    >>> ridge = PrivateRidge(epsilon=1.0, bounds=(-3.0, 3.0), y_bounds=(0.0, 20.0))
    >>> pipeline = make_pipeline(scaler, ridge).fit(X, X.sum(axis=1))
    >>> print(privacy_of(pipeline))  # costs add in zCDP, so less than 1.5
    epsilon 1.138 at delta 1e-06, one row replaced
    """
    if isinstance(model, PrivatePipeline):
        return model.privacy_
    claim = _composed(model)
    if leaking := data_dependent_steps(model):
        _warn(leaking, stacklevel=3)
        return replace(claim, private=False)
    return claim


class PrivatePipeline(Pipeline):  # type: ignore[misc]
    """A scikit-learn pipeline that warns of steps which learn from the rows without noise.

    Parameters
    ----------
    steps, transform_input, memory, verbose
        As in scikit-learn's ``Pipeline``.
    public_steps
        Names of steps that were checked to learn nothing from the rows, or only from public data.

    Attributes
    ----------
    privacy_
        What the fitted pipeline promises as a whole, as `privacy_of` says; not private if a step
        leaks that ``public_steps`` does not name.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from colonnade.estimators import PrivateRidge
    >>> X = np.random.default_rng(0).uniform(0.0, 10.0, (500, 2))
    >>> ridge = PrivateRidge(bounds=(-3.0, 3.0), y_bounds=(0.0, 20.0))
    >>> pipeline = PrivatePipeline([("scale", StandardScaler()), ("ridge", ridge)])
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     _ = pipeline.fit(X, X.sum(axis=1))
    >>> told[0].category.__name__
    'DataDependentStepWarning'
    >>> print(pipeline.privacy_)
    not private
    """

    def __init__(
        self,
        steps: list[tuple[str, Any]],
        *,
        public_steps: Sequence[str] = (),
        transform_input: Sequence[str] | None = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.public_steps = public_steps

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Warn of steps that leak, then fit; each private step spends its own epsilon."""
        self._warn_of_leaks()
        super().fit(X, y, **params)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Warn of steps that leak, then fit and transform."""
        self._warn_of_leaks()
        return super().fit_transform(X, y, **params)

    @property
    def privacy_(self) -> Claim:
        """What the fitted pipeline promises as a whole."""
        claim = _composed(self)
        return replace(claim, private=claim.private and not self._leaking())

    def _leaking(self) -> tuple[str, ...]:
        public = set(self.public_steps)
        return tuple(name for name in data_dependent_steps(self) if name not in public)

    def _warn_of_leaks(self) -> None:
        if leaking := self._leaking():
            _warn(leaking, stacklevel=4)


def make_private_pipeline(*steps: Any, public_steps: Sequence[str] = ()) -> PrivatePipeline:
    """Return a `PrivatePipeline` whose steps are named after their types.

    Examples
    --------
    >>> from colonnade.estimators import PrivateRidge, PrivateScaler
    >>> make_private_pipeline(PrivateScaler(), PrivateRidge()).steps[0][0]
    'privatescaler'
    """
    from sklearn.pipeline import make_pipeline

    return PrivatePipeline(make_pipeline(*steps).steps, public_steps=public_steps)


# scikit-learn does not tell a step which pipeline it stands in; the frames that fit it do.
_FITS = frozenset(
    inspect.unwrap(method).__code__ for method in (Pipeline.fit, Pipeline.fit_transform)
)


def warn_of_outer_pipeline() -> None:
    """Warn of steps that leak in scikit-learn's pipeline whose ``fit`` is on the call stack.

    A `PrivatePipeline` that is the outermost one has warned already.
    """
    outer, depth, level, frame = None, 1, 1, sys._getframe(1)  # noqa: SLF001
    while frame.f_back is not None:
        frame, level = frame.f_back, level + 1
        if frame.f_code in _FITS:
            outer, depth = frame.f_locals["self"], level
    if outer is None or isinstance(outer, PrivatePipeline):
        return
    if leaking := data_dependent_steps(outer):
        _warn(leaking, stacklevel=depth + 4)  # who called it, past scikit-learn's decorator


def _composed(model: Any) -> Claim:
    claims = [step.privacy_ for _, step in _leaves(model) if hasattr(step, "privacy_")]
    if not claims:
        raise ValueError("no step is private and fitted, so there is no claim")
    return compose_claims(claims) if len(claims) > 1 else claims[0]


def _leaves(model: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the steps, those of nested pipelines too, by the names that scikit-learn gives them."""
    if isinstance(model, Pipeline):
        parts = model.steps
    elif isinstance(model, FeatureUnion):
        parts = model.transformer_list
    elif isinstance(model, ColumnTransformer):
        fitted = getattr(model, "transformers_", model.transformers)
        parts = [(part, step) for part, step, _ in fitted]
    else:
        yield name or type(model).__name__.lower(), model
        return
    for part, step in parts:
        yield from _leaves(step, f"{name}__{part}" if name else part)


def _harmless(step: Any) -> bool:
    """Return whether a step learns nothing from the rows, or pays for it."""
    if step is None or isinstance(step, str | PrivateEstimator | PolynomialFeatures):
        return True  # a string is "passthrough" or "drop"
    if isinstance(step, OneHotEncoder | OrdinalEncoder):
        given = not isinstance(step.categories, str)
        rare = (getattr(step, name, None) for name in ("min_frequency", "max_categories"))
        return given and all(limit is None for limit in rare)
    return not get_tags(step).requires_fit


def _warn(leaking: Sequence[str], *, stacklevel: int) -> None:
    warnings.warn(
        f"no guarantee: {', '.join(leaking)} learns from the rows without noise, and predictions "
        "depend on what it learned; use a step that learns nothing from the rows or a private one, "
        "such as PrivateScaler",
        DataDependentStepWarning,
        stacklevel=stacklevel,
    )
