"""What a fit promises: an estimator's ``privacy_``, and part of a report."""

from dataclasses import asdict, dataclass
from typing import Any

from colonnade.privacy.accounting import epsilon_of, format_upper_bound, rho_from_units
from colonnade.solvers.budgets import Plan, sampled_claim
from colonnade.solvers.coordinate import STEP
from colonnade.solvers.registry import Solver
from colonnade.solvers.solve import sampling_rate

NEIGHBOURS = "one row replaced"


@dataclass(frozen=True, slots=True)
class Claim:
    """State the guarantee of one fit.

    Parameters
    ----------
    private
        Whether it holds: False for ``noise="fast"`` and ``noise="off"``.
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
            return "not private: the noise was not exact and secret"
        epsilon = format_upper_bound(self.epsilon)
        return f"epsilon {epsilon} at delta {self.delta:.3g}, {self.neighbours}"


def claim_of(
    plan: Plan, solver: Solver, *, n_rows: int, delta: float, private: bool, enforced: bool
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
        releases=tuple(
            {
                "kind": kind,
                **priced.mechanism.record(),
                "count": priced.count,
                "touches": priced.touches,
            }
            for kind, priced in plan.releases.items()
        ),
        amplified_epsilon=_amplified(plan, rate, delta) if rate < 1.0 and enforced else None,
    )


def _amplified(plan: Plan, rate: float, delta: float) -> float | None:
    try:
        return sampled_claim(plan, STEP, rate=rate, delta=delta)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "dp_accounting":
            raise
        return None  # it is beside the promise; a party needs no such package to be charged
