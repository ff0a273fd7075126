"""A private standard scaler: means and deviations are released with noise, within a budget."""

# ruff: noqa: N803, N806 - X is what scikit-learn calls it

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.estimators.base import PrivateEstimator
from colonnade.estimators.bounds import check_declared
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.mechanisms import DiscreteGaussian, Mechanism
from colonnade.privacy.sampling import NoiseSource, OsNoise
from colonnade.privacy.simulation import SeededNoise
from colonnade.solvers.budgets import BudgetPlan, ReleasePart, plan_units
from colonnade.solvers.checks import check_one_of
from colonnade.solvers.claims import zcdp_claim
from colonnade.solvers.designs.dense import DenseDesign, dense_design
from colonnade.solvers.fit import NOISES
from colonnade.solvers.iteration import Direct, Noiseless, Release
from colonnade.solvers.solve import check_promise

SUMS, SQUARES = "sums", "sums of squares"
# A deviation is at least one step of the grid: rounding alone makes about a third of one.
_LEAST = 1.0 / GRID


@dataclass(eq=False, repr=False)
class PrivateScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Remove noisy means and divide by noisy standard deviations, paid for with ``epsilon``.

    Values are clipped to ``bounds`` first and results to ``[-clip, clip]`` last, so that the next
    step of a pipeline declares ``bounds=(-clip, clip)``. scikit-learn's ``StandardScaler`` before a
    private estimator breaks its guarantee: means and deviations of the rows, and bounds that follow
    from them, are released without noise.

    Privacy: on the grid a value is an integer of at most ``GRID``. Replacing one row moves each of
    the ``d`` sums by at most ``2 GRID`` and each sum of squares by at most ``GRID**2``, so the
    vectors move by at most ``2 GRID sqrt(d)`` and ``GRID**2 sqrt(d)``; both are released with
    discrete Gaussian noise, each for half of the budget. ``transform`` treats every row by itself,
    as a function of its values and of the releases.

    Parameters
    ----------
    epsilon, delta
        The guarantee of one fit, for one row replaced; delta ``min(1e-6, 1 / (10 n))`` if None.
    bounds
        Of the features, as in `PrivateLasso`. There is no default.
    with_mean, with_std
        Whether to remove means, and to divide by deviations; means alone cost the whole budget,
        deviations need both sums.
    clip
        Largest size of a result if it is divided by its deviation; None for what bounds allow.
    noise, random_state
        As in `PrivateLasso`.

    Attributes
    ----------
    mean_, var_, scale_
        In the users' units; ``var_`` and ``scale_`` are None without ``with_std``. A variance below
        the deviation of its own noise is raised to it.
    privacy_
        The guarantee, a `Claim`.
    bounds_
        Two arrays: what values are clipped to.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Canonne, Kamath and Steinke (2020). The discrete Gaussian for differential privacy. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> draw = np.random.default_rng(0)
    >>> X = draw.normal([40.0, 2.0], [10.0, 0.5], (20_000, 2))
    >>> scaler = PrivateScaler(epsilon=1.0, bounds=([0.0, 0.0], [120.0, 10.0])).fit(X)
    >>> bool(abs(scaler.mean_[0] - 40.0) < 2.0), bool(abs(scaler.scale_[1] - 0.5) < 0.2)
    (True, True)
    >>> bool(np.abs(scaler.transform(X)).max() <= 4.0)
    True
    >>> print(scaler.privacy_)
    epsilon 1 at delta 1e-06, one row replaced
    """

    _: KW_ONLY
    with_mean: bool = True
    with_std: bool = True
    clip: float | None = 4.0

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:  # noqa: ARG002
        """Buy means and deviations, spending ``epsilon``.

        Parameters
        ----------
        X
            Shape ``(n_rows, n_features)``: an array or a data frame.
        y
            Ignored.
        **fit_params
            None is taken; ``sample_weight`` is refused with the reason.
        """
        self._begin_fit(fit_params)
        X = validate_data(self, X, dtype=np.float64)
        check_declared(bounds=self.bounds)
        check_one_of("noise", self.noise, NOISES)
        if not (self.with_mean or self.with_std):
            raise ValueError("there is nothing to do: set with_mean or with_std")
        if self.clip is not None and not 0.0 < self.clip < math.inf:
            raise ValueError("clip must be finite and positive, or None")
        n_rows, n_features = X.shape
        bounds = self._read_bounds(n_features)
        delta = check_promise(self.epsilon, self.delta, n_rows)
        units = units_down(rho_of(self.epsilon, delta))
        plan = plan_units(_parts(n_features, squares=self.with_std), units)
        mean, variance = _moments(dense_design(X, bounds), plan, self._release())
        halves = np.array([bound.half_width for bound in bounds])
        self.mean_ = np.array([bound.middle for bound in bounds]) + halves * mean
        self.var_ = None if variance is None else halves**2 * variance
        self.scale_ = None if variance is None else halves * np.sqrt(variance)
        self.bounds_ = (
            np.array([bound.low for bound in bounds]),
            np.array([bound.high for bound in bounds]),
        )
        self.privacy_ = zcdp_claim(plan, name="scaler", delta=delta, private=self.noise == "exact")
        return self

    def _release(self) -> Release:
        if self.noise == "off":
            return Noiseless()
        exact = self.noise == "exact"
        noise: NoiseSource = OsNoise() if exact else SeededNoise(self.random_state or 0)
        return Direct(noise)

    def transform(self, X: Any) -> FloatArray:
        """Return the rows clipped to the bounds, centred, scaled and clipped again."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        found: FloatArray = np.clip(X, *self.bounds_)
        if self.with_mean:
            found = found - self.mean_
        if self.scale_ is not None:
            found = found / self.scale_
            if self.clip is not None:
                found = np.clip(found, -self.clip, self.clip)
        return found

    def inverse_transform(self, X: Any) -> FloatArray:
        """Return rows in the users' units; what was clipped stays so."""
        check_is_fitted(self)
        found = np.array(X, np.float64)
        if self.scale_ is not None:
            found *= self.scale_
        if self.with_mean:
            found += self.mean_
        return found


def _parts(n_features: int, *, squares: bool) -> list[ReleasePart]:
    """Return the releases: sums, and sums of squares if wanted."""

    def sums(units: int) -> Mechanism:
        return DiscreteGaussian.within(units, l2_sensitivity2=n_features * (2 * GRID) ** 2)

    def sums_of_squares(units: int) -> Mechanism:
        return DiscreteGaussian.within(units, l2_sensitivity2=n_features * GRID**4)

    share = Fraction(1, 2) if squares else Fraction(1)
    second = [ReleasePart(SQUARES, share, 1, 1, sums_of_squares)] if squares else []
    return [ReleasePart(SUMS, share, 1, 1, sums), *second]


def _moments(
    design: DenseDesign, plan: BudgetPlan, release: Release
) -> tuple[FloatArray, FloatArray | None]:
    """Release means and, if planned, variances of the columns scaled to ``[-1, 1]``."""

    def sums() -> IntArray:
        total: IntArray = design.columns.sum(axis=1, dtype=np.int64)
        return total

    n_rows = design.shape[0]
    noisy = release(SUMS, 0, plan.mechanism(SUMS), sums)
    mean = np.clip(noisy / (n_rows * GRID), -1.0, 1.0)
    if SQUARES not in plan.releases:
        return mean, None
    mechanism = plan.mechanism(SQUARES)
    squares = release(SQUARES, 0, mechanism, design.square_sums) / (n_rows * GRID**2)
    least = _LEAST**2
    if isinstance(mechanism, DiscreteGaussian) and not isinstance(release, Noiseless):
        least = min(max(least, math.sqrt(mechanism.sigma2) / (n_rows * GRID**2)), 1.0)
    return mean, np.clip(squares - mean**2, least, 1.0)
