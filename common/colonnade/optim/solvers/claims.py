"""What a fit promises: an estimator's ``privacy_``, and part of a report."""

from dataclasses import asdict, dataclass
from typing import Any

from colonnade.optim.solvers.budgets import Plan, sampled_claim
from colonnade.optim.solvers.coordinate import STEP
from colonnade.optim.solvers.solve import Solver, sampling_rate
from colonnade.privacy.accounting import epsilon_of, rho_from_units

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

    def to_object(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"releases": list(self.releases)}

    def __str__(self) -> str:
        if not self.private:
            return "not private: the noise was not exact and secret"
        return f"epsilon {self.epsilon:.4g} at delta {self.delta:.3g}, {self.neighbours}"


def claim_of(
    plan: Plan, solver: Solver, *, n_rows: int, delta: float, private: bool, enforced: bool
) -> Claim:
    """Return what a run of ``plan`` promises, computed anew from the integers of its noise."""
    rate = 1.0 if enforced else sampling_rate(solver, n_rows)
    rho = None if rate < 1.0 else rho_from_units(plan.units(enforced=enforced))
    if rho is None:
        epsilon = sampled_claim(plan, STEP, rate=rate, delta=delta)
    else:
        epsilon = epsilon_of(rho, delta)
    return Claim(
        private=private,
        epsilon=epsilon,
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
    )
