"""The arguments with which a solver starts."""

from dataclasses import dataclass

from colonnade.core.arrays import FloatArray
from colonnade.privacy.sampling import NoiseSource
from colonnade.solvers.budgets import BudgetPlan
from colonnade.solvers.designs.dense import Design
from colonnade.solvers.iteration import Release
from colonnade.solvers.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A problem on a table, what may be asked of it, and where secret batches come from.

    Examples
    --------
    >>> import numpy as np
    >>> from colonnade.linear import SQUARED, Penalty
    >>> from colonnade.privacy.sampling import OsNoise
    >>> from colonnade.solvers import CoordinateDescent, DenseDesign, make_plan, plain
    >>> from colonnade.solvers.iteration import Noiseless
    >>> design = DenseDesign(np.array([[1, 2, 3]], np.int16), np.ones(1))
    >>> solver = CoordinateDescent(passes=2, clip=1.0, squares="bounds")
    >>> plan = make_plan(solver, design.shape, epsilon=1.0, delta=1e-6)
    >>> problem = plain(SQUARED, Penalty(), 1)
    >>> given = Setting(problem, design, np.zeros(3), plan, Noiseless(), OsNoise())
    >>> solver.start(given).relaxation(0)
    1.0
    """

    problem: Problem
    design: Design
    label: FloatArray  # shape (n_rows,)
    plan: BudgetPlan
    release: Release
    sampler: NoiseSource
