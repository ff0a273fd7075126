"""Default hyperparameters, from public numbers: the loss, the size of the table, the budget.

None stands for these. They were chosen by measurements of private fits of squared and
logistic loss on synthetic tables (epsilon 0.5 to 2, 1000 to 20 000 rows, to 100 000 for coordinate
descent, 5 and 20 features, columns that fill their bounds, that do not, and that are skewed and
correlated); the same tables served to choose and to compare. Squared
error was seen on tables with skewed labels that fill their bounds, too, where lower thresholds did
harm. The hinge takes the logistic loss's.
They are not those that do best without noise: a low threshold biases a classifier.

Privacy: nothing here depends on a row.
"""

from dataclasses import replace

from colonnade.linear.losses import Loss
from colonnade.privacy.accounting import rho_of
from colonnade.solvers.algorithms.admm import Admm
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.algorithms.greedy import GreedyDescent
from colonnade.solvers.algorithms.sgd import DEFAULT_BATCH_SIZE, StochasticDescent
from colonnade.solvers.registry import Solver

# For squared error, and for classes. Labels are scaled by bounds that they rarely fill, so that
# residuals are small; slopes of a classifier are up to 1, and a low threshold would bias it.
_CLIPS = (
    (CoordinateDescent, (0.5, 1.0)),
    (GreedyDescent, (0.5, 0.7)),
    (StochasticDescent, (0.2, 0.4)),
    (Admm, (0.05, 0.4)),
)
# A pass costs an excess loss that is proportional to n_features**2 / (rho n_rows**2).
_PASSES_PER_STRENGTH = (0.007, 0.002)
_FEWEST, _MOST = 5, 50


def with_defaults(
    solver: Solver,
    loss: Loss,
    shape: tuple[int, int],
    *,
    epsilon: float,
    delta: float,
    enforced: bool = False,
    n_problems: int = 1,
) -> Solver:
    """Return the solver with a value for every hyperparameter, for a table of ``shape``.

    Batches save noise only where sampling is credited: if every release is charged in full,
    ``enforced``, gradient descent reads all rows at every step. Passes of coordinate descent are as
    many as keep the noise of all steps together small beside what they gain: more rows and a larger
    budget, shared among ``n_problems``, pay for more. A registered solver is returned as it is: its
    fields have values.

    Examples
    --------
    >>> from colonnade.linear.losses import SQUARED
    >>> solver = with_defaults(CoordinateDescent(), SQUARED, (10_000, 5), epsilon=1.0, delta=1e-6)
    >>> solver.passes, solver.clip
    (50, 0.5)
    """
    for kind, clips in _CLIPS:
        if isinstance(solver, kind) and solver.clip is None:
            solver = replace(solver, clip=clips[loss.classifies])
    if isinstance(solver, StochasticDescent) and solver.batch_size is None:
        return replace(solver, batch_size="full" if enforced else DEFAULT_BATCH_SIZE)
    if not isinstance(solver, CoordinateDescent) or solver.passes is not None:
        return solver
    n_rows, n_features = shape
    strength = rho_of(epsilon, delta) / n_problems * (n_rows / n_features) ** 2
    passes = round(_PASSES_PER_STRENGTH[loss.classifies] * strength)
    return replace(solver, passes=min(max(passes, _FEWEST), _MOST))
