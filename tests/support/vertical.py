"""A vertical job in one process, and how well it does."""

from colonnade.methods.frank_wolfe.solver.steps import Iterate
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec
from colonnade.methods.problem import Loss, Problem
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.simulate.inprocess.vertical import Data, grid, model_of, parties, quality, run

__all__ = ["Data", "grid", "parties", "planned", "r2", "run"]


def r2(data: Data, spec: FrankWolfeSpec, state: Iterate) -> float:
    """Return the share of the label's variance that the model explains."""
    return quality(data, model_of(spec, state), spec.loss)


def planned(data: Data, epsilon: float, loss: Loss = Loss.SQUARED) -> Problem:
    """Return what a planner is asked for a table whose parties are ``p0``, ``p1``, ..."""
    return Problem(
        n_rows=data.label.size,
        features={f"p{k}": [f"x{i}" for i in split] for k, split in enumerate(data.splits)},
        rho_units=units_down(rho_of(epsilon, 1e-6)),
        loss=loss,
    )
