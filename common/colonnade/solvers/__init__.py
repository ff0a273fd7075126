"""Single-site private solvers: one noisy fixed-point iteration and its instances."""

from colonnade.solvers.algorithms.admm import Admm
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.algorithms.dual import DualDescent
from colonnade.solvers.algorithms.frank_wolfe import FrankWolfe
from colonnade.solvers.algorithms.gram import Gram
from colonnade.solvers.algorithms.greedy import GreedyDescent
from colonnade.solvers.algorithms.sgd import StochasticDescent
from colonnade.solvers.budgets import BudgetPlan, ReleasePart
from colonnade.solvers.claims import Claim, compose_claims
from colonnade.solvers.context import Setting
from colonnade.solvers.defaults import with_defaults
from colonnade.solvers.designs.dense import DenseDesign, Rows, dense_design
from colonnade.solvers.designs.slopes import slopes_of
from colonnade.solvers.designs.sparse import SparseDesign, SparseRows, sparse_design
from colonnade.solvers.fit import (
    Fitted,
    Objective,
    ResolvedFit,
    SolverTable,
    fit_table,
    resolve_fit,
)
from colonnade.solvers.iteration import EVERYTHING, Block, Diverged, Operator, Release, iterate
from colonnade.solvers.problem import Problem, plain
from colonnade.solvers.registry import SOLVERS, Solver, Unsuitable, make_solver, register_solver
from colonnade.solvers.solve import make_plan, solve

__all__ = [
    "EVERYTHING",
    "SOLVERS",
    "Admm",
    "Block",
    "BudgetPlan",
    "Claim",
    "CoordinateDescent",
    "DenseDesign",
    "Diverged",
    "DualDescent",
    "Fitted",
    "FrankWolfe",
    "Gram",
    "GreedyDescent",
    "Objective",
    "Operator",
    "Problem",
    "Release",
    "ReleasePart",
    "ResolvedFit",
    "Rows",
    "Setting",
    "Solver",
    "SolverTable",
    "SparseDesign",
    "SparseRows",
    "StochasticDescent",
    "Unsuitable",
    "compose_claims",
    "dense_design",
    "fit_table",
    "iterate",
    "make_plan",
    "make_solver",
    "plain",
    "register_solver",
    "resolve_fit",
    "slopes_of",
    "solve",
    "sparse_design",
    "with_defaults",
]
