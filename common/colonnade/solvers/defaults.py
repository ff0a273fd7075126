"""Default hyperparameters, from public numbers: the loss, the size of the table, the budget.

A setting of 0 stands for these. They were chosen by measurements of private fits of squared and
logistic loss on synthetic tables (epsilon 0.5 to 2, 1000 to 20 000 rows, to 100 000 for coordinate
descent, 5 and 20 features, columns that fill their bounds, that do not, and that are skewed and
correlated); the same tables served to choose and to compare. Squared
error was seen on tables with skewed labels that fill their bounds, too, where lower thresholds did
harm. The hinge takes the logistic loss's.
They are not those that do best without noise: a low threshold bends a classifier.

Privacy: nothing here depends on a row.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from colonnade.linear.losses import Loss
from colonnade.privacy.accounting import rho_of
from colonnade.solvers.admm import Admm
from colonnade.solvers.coordinate import CoordinateDescent
from colonnade.solvers.greedy import GreedyDescent
from colonnade.solvers.sgd import USUAL_BATCH, StochasticDescent

if TYPE_CHECKING:
    from colonnade.solvers.solve import Solver

# For squared error, and for classes. Labels are scaled by bounds that they rarely fill, so that
# residuals are small; slopes of a classifier are up to 1, and a low threshold would bend it.
_CLIPS = {"cd": (0.5, 1.0), "gcd": (0.5, 0.7), "sgd": (0.2, 0.4), "admm": (0.05, 0.4)}
# A pass costs an excess loss that is proportional to n_features**2 / (rho n_rows**2).
_PASSES_PER_STRENGTH = (0.007, 0.002)
_FEWEST, _MOST = 5, 50


def with_thresholds(solver: "Solver", loss: Loss) -> "Solver":
    """Return the solver with a threshold that suits the loss, if it has none."""
    named = CoordinateDescent | GreedyDescent | StochasticDescent | Admm
    if isinstance(solver, named) and solver.clip == 0.0:
        return replace(solver, clip=_CLIPS[solver.name][loss.classifies])
    return solver


def settled(
    solver: "Solver",
    loss: Loss,
    shape: tuple[int, int],
    *,
    epsilon: float,
    delta: float,
    enforced: bool = False,
) -> "Solver":
    """Return the solver with every setting that nobody chose, for a table of ``shape``.

    Batches save noise only where sampling is credited: if every release is charged in full,
    ``enforced``, gradient descent reads all rows at every step. Passes of coordinate descent are as
    many as keep the noise of all steps together small beside what they gain: more rows and a larger
    budget pay for more.
    """
    solver = with_thresholds(solver, loss)
    if isinstance(solver, StochasticDescent) and solver.batch < 0:
        return replace(solver, batch=0 if enforced else USUAL_BATCH)
    if not isinstance(solver, CoordinateDescent) or solver.passes:
        return solver
    n_rows, n_features = shape
    strength = rho_of(epsilon, delta) * (n_rows / n_features) ** 2
    passes = round(_PASSES_PER_STRENGTH[loss.classifies] * strength)
    return replace(solver, passes=min(max(passes, _FEWEST), _MOST))
