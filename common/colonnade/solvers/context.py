"""What a solver is given when it starts."""

from dataclasses import dataclass

from colonnade.core.arrays import FloatArray
from colonnade.privacy.sampling import NoiseSource
from colonnade.solvers.budgets import Plan
from colonnade.solvers.design import Design
from colonnade.solvers.iteration import Release
from colonnade.solvers.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A problem on a table, what may be asked of it, and where secret batches come from."""

    problem: Problem
    design: Design
    label: FloatArray  # shape (n_rows,)
    plan: Plan
    release: Release
    sampler: NoiseSource
