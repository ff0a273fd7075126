"""What a solver's releases cost, fixed before the run.

Full-batch solvers are priced in zCDP: their releases' costs add up. One with Poisson batches is
priced by Rényi divergences of the sampled Gaussian mechanism, through dp-accounting. Both are for
the replacement of one row.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from colonnade.privacy.accounting import epsilon_of
from colonnade.privacy.mechanisms import DiscreteGaussian, Mechanism
from colonnade.solvers.designs.column_kernels import TOP

STEP_SENSITIVITY2 = (2 * TOP) ** 2
"""Squared sensitivity of a sum of clipped integers under replacement of one row."""


@dataclass(frozen=True, slots=True)
class ReleasePart:
    """One kind of release of a solver.

    Parameters
    ----------
    share
        Of the budget.
    count
        Releases of this kind in a run.
    touches
        How many of them one row can affect; fewer than ``count`` if a public partition of the rows
        keeps a row out of the others.
    make
        The mechanism with the least noise for so many units a release.

    Examples
    --------
    >>> ReleasePart("step", Fraction(1), count=10, touches=10, make=gaussian_step).share
    Fraction(1, 1)
    """

    kind: str
    share: Fraction
    count: int
    touches: int
    make: Callable[[int], Mechanism]


@dataclass(frozen=True, slots=True)
class Priced:
    """A mechanism, used ``count`` times, of which one row affects ``touches``."""

    mechanism: Mechanism
    count: int
    touches: int


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """The mechanisms of a run by kind of release, and what they cost together.

    Examples
    --------
    >>> plan = plan_units([ReleasePart("step", Fraction(1), 10, 10, gaussian_step)], 10_000_000)
    >>> plan.units() <= 10_000_000
    True
    >>> plan.mechanism("step").name
    'discrete_gaussian'
    """

    releases: Mapping[str, Priced]

    def units(self, *, enforced: bool = False) -> int:
        """Return the zCDP price in units of ``2**-50`` rho.

        ``enforced`` is what a ledger charges: every release in full, for it does not know that
        batches were disjoint or secret.
        """
        return sum(
            (priced.count if enforced else priced.touches) * priced.mechanism.cost
            for priced in self.releases.values()
        )

    def mechanism(self, kind: str) -> Mechanism:
        """Return the mechanism of one kind of release."""
        return self.releases[kind].mechanism


def gaussian_step(units: int) -> Mechanism:
    """Return the noise of a sum of clipped rows for ``units``.

    Examples
    --------
    >>> gaussian_step(2**50).l2_sensitivity2 == STEP_SENSITIVITY2
    True
    """
    return DiscreteGaussian.within(units, l2_sensitivity2=STEP_SENSITIVITY2)


def plan_units(parts: Sequence[ReleasePart], units: int, *, enforced: bool = False) -> BudgetPlan:
    """Spend at most ``units`` of zCDP on ``parts``, each by its share.

    Examples
    --------
    >>> halves = [ReleasePart(kind, Fraction(1, 2), 4, 4, gaussian_step) for kind in ("one", "two")]
    >>> plan_units(halves, 2**50).units() <= 2**50
    True
    """
    if sum(part.share for part in parts) != 1:
        raise ValueError("the shares of a budget add up to 1")
    releases = {}
    for part in parts:
        times = part.count if enforced else part.touches
        each = math.floor(part.share * units) // times
        if each < 1:
            raise ValueError(f"the budget is too small for {part.count} releases of {part.kind}")
        releases[part.kind] = Priced(part.make(each), part.count, part.touches)
    return BudgetPlan(releases)


# Orders at which the sampled mechanism is evaluated; twice each is an integer (see below).
_ORDERS = (1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128)


def sampled_epsilon(*, rate: float, steps: int, multiplier: float, delta: float) -> float:
    """Return epsilon of ``steps`` sums over Poisson batches, under replacement of one row.

    Privacy: let ``P`` and ``Q`` be the runs on two neighbouring tables and ``R`` the run without
    the row in which they differ. For every order ``a``

        D_a(P, Q) <= (a - 1/2) / (a - 1) * D_2a(P, R) + D_(2a-1)(R, Q)

    (Mironov 2017, Proposition 11), and both terms on the right are divergences of the sampled
    Gaussian mechanism for adding or removing a row (Mironov, Talwar and Zhang 2019). These hold
    for the *discrete* Gaussian at integer orders too: there the divergence is a binomial sum of
    ``E exp(k L)``, and for an integer shift a sum over integers is the same at every integer
    place, so each expectation has its continuous value. Hence orders ``2 a`` are integers here.

    Parameters
    ----------
    rate
        Probability with which a row is in a batch, independently.
    multiplier
        Standard deviation of the noise over the largest norm of what one row adds.

    References
    ----------
    Mironov (2017). Rényi differential privacy. CSF.

    Mironov, Talwar and Zhang (2019). Rényi differential privacy of the sampled Gaussian mechanism.

    Examples
    --------
    >>> full = sampled_epsilon(rate=1.0, steps=100, multiplier=20.0, delta=1e-6)
    >>> sampled_epsilon(rate=0.1, steps=100, multiplier=20.0, delta=1e-6) < 0.3 * full
    True
    """
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant, compute_epsilon

    rho = steps * 4.0 / (2.0 * multiplier**2)  # every row in every batch, moved by twice the norm
    plain = epsilon_of(rho, delta)
    if rate >= 1.0:
        return plain
    orders = sorted({order for a in _ORDERS for order in (2 * a, 2 * a - 1)})
    accountant = RdpAccountant(orders=[float(order) for order in orders])
    batch = PoissonSampledDpEvent(rate, GaussianDpEvent(multiplier))
    accountant.compose(SelfComposedDpEvent(batch, steps))
    curve = dict(zip(orders, (float(value) for value in accountant.rdp), strict=True))
    both = [(a - 0.5) / (a - 1.0) * curve[2 * a] + curve[2 * a - 1] for a in _ORDERS]
    sampled, _ = compute_epsilon([float(a) for a in _ORDERS], both, delta)
    return min(plain, float(sampled))


def plan_sampled(kind: str, *, rate: float, steps: int, epsilon: float, delta: float) -> BudgetPlan:
    """Return the least noise for which `sampled_epsilon` is at most ``epsilon``."""
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise ValueError("epsilon must be finite and positive")

    def cost(multiplier: float) -> float:
        return sampled_epsilon(rate=rate, steps=steps, multiplier=multiplier, delta=delta)

    low, high = 0.0, 1.0
    while cost(high) > epsilon:
        low, high = high, 2.0 * high
        if high > 2.0**22:
            raise ValueError("the budget is too small for so many steps")
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if cost(middle) > epsilon else (low, middle)
    sigma2 = math.ceil(Fraction(high) ** 2 * TOP**2)
    return BudgetPlan({kind: Priced(DiscreteGaussian(sigma2, STEP_SENSITIVITY2), steps, steps)})


def sampled_claim(plan: BudgetPlan, kind: str, *, rate: float, delta: float) -> float:
    """Return epsilon of the releases of ``kind``, from the integers of their mechanism."""
    priced = plan.releases[kind]
    if not isinstance(priced.mechanism, DiscreteGaussian):
        raise TypeError("only Gaussian sums are sampled")
    multiplier = math.sqrt(priced.mechanism.sigma2) / TOP * (1.0 - 1e-12)
    return sampled_epsilon(rate=rate, steps=priced.count, multiplier=multiplier, delta=delta)
