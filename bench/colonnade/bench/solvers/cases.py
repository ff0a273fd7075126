"""The problems of Mangold et al. 2022, Table 2, and what they report.

The paper states neither its penalties nor whether labels were centred, nor which columns California
has, nor how the sparse LASSO's coefficients are drawn. What is used here was chosen by agreement
with its rows, so that agreement is no independent evidence where the choice was made:

- Penalties fit the rows for DP-CD; the rows for DP-SGD on Electricity are then evidence.
- California has the census's totals of rooms, bedrooms and households. With scikit-learn's averages
  a household and a centred label DP-SGD never left the zero model on raw columns, at any of six
  penalties tried; the totals, and the raw penalty, were chosen by both of its raw rows. The
  standardised ones, whose penalty was fixed before, are evidence.
- The sparse LASSO's ten coefficients are normal. Of size 1, with two levels of label noise tried,
  DP-CD ended at .42 and .47 after 2 passes. The penalty makes the zero model as bad as the paper's.
  Errors differ much between draws, so that some are averaged; the paper has one.

As in the paper, standardisation, bounds and smoothness constants are taken from the data and cost
nothing: these runs show what an algorithm does with its noise, not a private release.
"""

# ruff: noqa: N803, N806 - X is what the papers call it

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.core.arguments import BadArgument
from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import Bounds
from colonnade.linear.losses import LOGISTIC, SQUARED, Loss
from colonnade.linear.penalties import Penalty, lasso, ridge
from colonnade.privacy.sampling import NoiseSource, OsNoise
from colonnade.privacy.simulation import SeededNoise
from colonnade.solvers.budgets import BudgetPlan
from colonnade.solvers.designs.dense import DenseDesign, dense_design
from colonnade.solvers.iteration import Direct, Diverged
from colonnade.solvers.problem import Problem, plain
from colonnade.solvers.registry import Solver
from colonnade.solvers.solve import solve

PASSES = (2, 5, 10, 20, 50)
SPARSE, DRAWS = "sparse lasso", 5


@dataclass(frozen=True, slots=True)
class PaperRow:
    """Relative errors by number of passes, as printed."""

    cd: tuple[float, ...]
    sgd: tuple[float, ...]


PAPER: Mapping[str, PaperRow] = {
    "electricity raw": PaperRow(
        (0.1458, 0.0842, 0.0436, 0.0147, 0.0020), (0.2047, 0.1804, 0.1766, 0.1644, 0.1484)
    ),
    "electricity standardised": PaperRow(
        (0.0186, 0.0023, 0.0013, 0.0013, 0.0019), (0.0391, 0.0189, 0.0123, 0.0106, 0.0040)
    ),
    "california raw": PaperRow(
        (0.1708, 0.1232, 0.0598, 0.0287, 0.0124), (0.2799, 0.1863, 0.1476, 0.1094, 0.1068)
    ),
    "california standardised": PaperRow(
        (0.0007, 0.0011, 0.0012, 0.0010, 0.0017), (0.0351, 0.0226, 0.0125, 0.0087, 0.0042)
    ),
    SPARSE: PaperRow(
        (0.2498, 0.4702, 0.5982, 0.7160, 0.7551), (0.7551, 0.7551, 0.7551, 0.7551, 0.7551)
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class SolverCase:
    """A problem with its data, its optimum and the privacy that the paper gives it."""

    name: str
    problem: Problem
    X: FloatArray
    y: FloatArray
    design: DenseDesign
    epsilon: float
    delta: float
    best: float

    @property
    def squares(self) -> tuple[float, ...]:
        """Mean squares of the columns: the paper takes them as given."""
        return tuple((self.X**2).mean(axis=0).tolist())

    def relative_error(self, coef: FloatArray) -> float:
        """Return ``F / F* - 1`` on the rows as they are, before rounding."""
        return self.problem.objective(coef, self.X @ coef, self.y) / self.best - 1.0

    def run_error(self, solver: Solver, plan: BudgetPlan, *, seed: int | None) -> float:
        """Return the relative error of one run, with exact noise if ``seed`` is None.

        A run that diverges counts as infinite.
        """
        noise: NoiseSource = OsNoise() if seed is None else SeededNoise(seed)
        release = Direct(noise)
        try:
            coef = solve(
                self.problem, self.design, self.y, solver, plan=plan, release=release, sampler=noise
            )
        except Diverged:
            return float("inf")
        return self.relative_error(coef)

    @property
    def zero(self) -> float:
        """The relative error of the zero model."""
        return self.relative_error(np.zeros(self.X.shape[1]))


def case_names() -> tuple[str, ...]:
    """Return the names of all problems, in the table's order."""
    return tuple(PAPER)


def load_draws(name: str, folder: Path | None) -> list[SolverCase]:
    """Return the problem called ``name``: one, or some draws of the synthetic one."""
    if name != SPARSE:
        return [load_case(name, folder)]
    return [_sparse_case(seed) for seed in range(DRAWS)]


def load_case(name: str, folder: Path | None) -> SolverCase:
    """Return the problem of a public table, called after it and the form of its columns."""
    table, form = name.split()
    X, y = read_table(table, folder)
    if table == "california":
        X = census_totals(X)
    raw = form == "raw"
    if not raw:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    if table == "electricity":
        return make_case(name, X, y, LOGISTIC, ridge(1.0 / y.size), epsilon=1.0)
    if raw:
        y = y - y.mean()
    return make_case(name, X, y, SQUARED, lasso(0.65 if raw else 0.1), epsilon=1.0)


def read_table(name: str, folder: Path | None) -> tuple[FloatArray, FloatArray]:
    """Read a public table: features, and the last column as the target."""
    path = None if folder is None else folder / f"{name}.csv.gz"
    if path is None or not path.is_file():
        raise BadArgument("data", f"must name the folder of {name}.csv.gz, which is not at hand")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        values = np.array([[float(cell) for cell in row] for row in rows])
    return values[:, :-1], values[:, -1]


def census_totals(X: FloatArray) -> FloatArray:
    """Turn scikit-learn's averages a household back into the census's totals of a block.

    The columns are income, age, rooms, bedrooms, people, people a household, latitude, longitude;
    the sixth becomes the number of households.
    """
    households = X[:, 4] / X[:, 5]
    totals = X.copy()
    totals[:, 2:4] *= households[:, None]
    totals[:, 5] = households
    return totals


def _sparse_case(seed: int) -> SolverCase:
    """Draw a sparse problem, and find by bisection the penalty at which zero is the paper's."""
    X, y = _sparse(seed)
    low, high = 0.0, float(np.abs(X.T @ y).max()) / y.size  # beyond it the optimum is zero
    for _ in range(8):
        middle = 0.5 * (low + high)
        case = make_case(f"{SPARSE} {seed}", X, y, SQUARED, lasso(middle), epsilon=10.0)
        low, high = (middle, high) if case.zero > PAPER[SPARSE].sgd[-1] else (low, middle)
    return case


def _sparse(seed: int) -> tuple[FloatArray, FloatArray]:
    """Draw 1000 rows of 1000 independent normal features, ten of them active."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(1000, 1000))
    coef = np.zeros(1000)
    coef[draw.choice(1000, 10, replace=False)] = draw.normal(size=10)
    signal = X @ coef
    return X, signal + 0.1 * signal.std() * draw.normal(size=1000)


def make_case(
    name: str, X: FloatArray, y: FloatArray, loss: Loss, penalty: Penalty, *, epsilon: float
) -> SolverCase:
    """Return the problem with its design and its optimum, at delta ``1 / n**2``."""
    n_rows, n_features = X.shape
    problem = plain(loss, penalty, n_features)
    most = np.abs(X).max(axis=0)
    bounds = [Bounds(-float(each), float(each)) for each in most]
    design = dense_design(X, bounds, users_units=True)
    coef = _optimum(X, y, loss, penalty)
    best = problem.objective(coef, X @ coef, y)
    return SolverCase(name, problem, X, y, design, epsilon, 1.0 / n_rows**2, best)


def _optimum(X: FloatArray, y: FloatArray, loss: Loss, penalty: Penalty) -> FloatArray:
    from sklearn.linear_model import Lasso, LogisticRegression

    if loss is SQUARED:
        model = Lasso(alpha=penalty.l1, fit_intercept=False, tol=1e-10, max_iter=10**6)
        return np.asarray(model.fit(X, y).coef_)
    strength = 1.0 / (penalty.l2 * y.size)
    # Newton's method does not mind columns of very different size.
    model = LogisticRegression(
        C=strength, fit_intercept=False, solver="newton-cholesky", tol=1e-10, max_iter=1000
    )
    return np.asarray(model.fit(X, y).coef_[0])
