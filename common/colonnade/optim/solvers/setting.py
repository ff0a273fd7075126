"""What a solver is given when it starts."""

from dataclasses import dataclass

from colonnade.core.arrays import FloatArray
from colonnade.optim.solvers.budgets import Plan
from colonnade.optim.solvers.design import Design
from colonnade.optim.solvers.iteration import Release
from colonnade.optim.solvers.problem import Problem
from colonnade.privacy.sampling import NoiseSource


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A problem on a table, what may be asked of it, and where secret batches come from."""

    problem: Problem
    design: Design
    label: FloatArray  # shape (n_rows,)
    plan: Plan
    release: Release
    sampler: NoiseSource
