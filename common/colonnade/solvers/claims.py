"""The privacy guarantee of a fit: an estimator's ``privacy_``, and part of a report."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from colonnade.privacy.accounting import epsilon_of, format_upper_bound, rho_from_units
from colonnade.privacy.mechanisms import record_of
from colonnade.solvers.algorithms.coordinate import STEP
from colonnade.solvers.budgets import BudgetPlan, sampled_claim
from colonnade.solvers.registry import Solver
from colonnade.solvers.solve import sampling_rate

NEIGHBOURS = "one row replaced"


@dataclass(frozen=True, slots=True)
class Claim:
    """State the guarantee of one fit.

    Parameters
    ----------
    private
        Whether it holds: False for ``noise="fast"`` and ``noise="off"``, and for a pipeline with a
        step that learns from the rows without noise.
    epsilon, delta
        The guarantee, for one row replaced.
    rho
        The same in zCDP; None if secret batches make it smaller than any rho says.
    charged_rho
        What a ledger charges for the same releases: no sampling, no disjoint batches.
    sampling_rate
        Probability with which a row is in a batch; 1 if all rows are in all.
    amplified_epsilon
        Beside a ledger's charge, which takes no credit for sampling: epsilon of the same releases
        at the same delta if nobody learns who was in which batch. None where that is the claim
        itself, where there is no sampling, and without dp-accounting.
    releases
        For each kind: the mechanism's name and integers, how often it is used, and how many of
        them one row can affect.

    Examples
    --------
    >>> from colonnade.linear.losses import SQUARED
    >>> from colonnade.solvers.algorithms.coordinate import CoordinateDescent
    >>> from colonnade.solvers.fit import Objective, resolve_fit
    >>> claim = resolve_fit(Objective(SQUARED), CoordinateDescent(), (1000, 4), epsilon=1.0).claim
    >>> claim.private, claim.delta, claim.sampling_rate
    (True, 1e-06, 1.0)
    >>> sorted(claim.to_object())[:3]
    ['amplified_epsilon', 'charged_rho', 'delta']
    """

    private: bool
    epsilon: float
    delta: float
    rho: float | None
    charged_rho: float
    solver: str
    sampling_rate: float
    releases: tuple[dict[str, int | str], ...]
    neighbours: str = NEIGHBOURS
    amplified_epsilon: float | None = None

    def to_object(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"releases": list(self.releases)}

    def __str__(self) -> str:
        if not self.private:
            return "not private"
        epsilon = format_upper_bound(self.epsilon)
        return f"epsilon {epsilon} at delta {self.delta:.3g}, {self.neighbours}"


def claim_of(
    plan: BudgetPlan, solver: Solver, *, n_rows: int, delta: float, private: bool, enforced: bool
) -> Claim:
    """Return what a run of ``plan`` promises, computed anew from the integers of its noise."""
    rate = sampling_rate(solver, n_rows)
    credited = rate < 1.0 and not enforced
    rho = None if credited else rho_from_units(plan.units(enforced=enforced))
    return Claim(
        private=private,
        epsilon=(
            sampled_claim(plan, STEP, rate=rate, delta=delta)
            if rho is None
            else epsilon_of(rho, delta)
        ),
        delta=delta,
        rho=rho,
        charged_rho=rho_from_units(plan.units(enforced=True)),
        solver=solver.name,
        sampling_rate=rate,
        releases=_records(plan),
        amplified_epsilon=_amplified(plan, rate, delta) if rate < 1.0 and enforced else None,
    )


def zcdp_claim(plan: BudgetPlan, *, name: str, delta: float, private: bool) -> Claim:
    """Return what releases without batches promise, such as those of a scaler.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from colonnade.solvers.budgets import ReleasePart, gaussian_step, plan_units
    >>> plan = plan_units([ReleasePart("step", Fraction(1), 5, 5, gaussian_step)], 2**44)
    >>> round(zcdp_claim(plan, name="example", delta=1e-6, private=True).rho, 9)
    0.015625
    """
    rho = rho_from_units(plan.units())
    return Claim(
        private=private,
        epsilon=epsilon_of(rho, delta),
        delta=delta,
        rho=rho,
        charged_rho=rho_from_units(plan.units(enforced=True)),
        solver=name,
        sampling_rate=1.0,
        releases=_records(plan),
    )


def compose_claims(claims: Sequence[Claim]) -> Claim:
    """Return what several fits on the same rows promise together.

    Privacy: costs in zCDP add, also if a later fit was chosen by what earlier ones released (Bun
    and Steinke 2016, Lemma 2.3); the sum is stated at the largest delta. A claim without rho, of
    secret batches, is added to the rest by its epsilon and delta (Dwork and Roth 2014, Theorem
    3.16).

    References
    ----------
    Bun and Steinke (2016). Concentrated differential privacy: simplifications, extensions, and
    lower bounds. TCC.

    Dwork and Roth (2014). The algorithmic foundations of differential privacy. Foundations and
    Trends in Theoretical Computer Science.

    Examples
    --------
    >>> from colonnade.linear.losses import SQUARED
    >>> from colonnade.solvers.algorithms.coordinate import CoordinateDescent
    >>> from colonnade.solvers.fit import Objective, resolve_fit
    >>> fit = resolve_fit(Objective(SQUARED), CoordinateDescent(), (1000, 4), epsilon=1.0)
    >>> print(compose_claims([fit.claim, fit.claim]))  # less than twice epsilon 1
    epsilon 1.452 at delta 1e-06, one row replaced
    """
    if not claims:
        raise ValueError("there is no claim to compose")
    in_zcdp = [claim for claim in claims if claim.rho is not None]
    apart = [claim for claim in claims if claim.rho is None]
    rho = sum(claim.rho or 0.0 for claim in in_zcdp)
    delta = max((claim.delta for claim in in_zcdp), default=0.0)
    epsilon = epsilon_of(rho, delta) if in_zcdp else 0.0
    return Claim(
        private=all(claim.private for claim in claims),
        epsilon=epsilon + sum(claim.epsilon for claim in apart),
        delta=delta + sum(claim.delta for claim in apart),
        rho=None if apart else rho,
        charged_rho=sum(claim.charged_rho for claim in claims),
        solver=" + ".join(claim.solver for claim in claims),
        sampling_rate=min(claim.sampling_rate for claim in claims),
        releases=tuple(release for claim in claims for release in claim.releases),
    )


def _records(plan: BudgetPlan) -> tuple[dict[str, int | str], ...]:
    return tuple(
        {
            "kind": kind,
            **record_of(priced.mechanism),
            "count": priced.count,
            "touches": priced.touches,
        }
        for kind, priced in plan.releases.items()
    )


def _amplified(plan: BudgetPlan, rate: float, delta: float) -> float | None:
    try:
        return sampled_claim(plan, STEP, rate=rate, delta=delta)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "dp_accounting":
            raise
        return None  # it is beside the promise; a party needs no such package to be charged
