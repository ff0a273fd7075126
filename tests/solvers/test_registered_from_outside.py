"""A loss, a penalty and a solver of another package, used by `colonnade fit` and an estimator.

All three are written here with the public interface alone: Huber's loss, the minimax concave
penalty (Zhang 2010), and gradient descent on all rows whose noise is discrete Laplace.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from support.ledgers import new_ledger

from colonnade.cli.main import main
from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.data.model import load_model
from colonnade.estimators import PrivateLinearRegressor
from colonnade.linear import LOSSES, PENALTIES, Loss, register_loss, register_penalty
from colonnade.privacy.accounting import RHO_UNIT, units_down
from colonnade.privacy.mechanisms import DiscreteLaplace, Mechanism
from colonnade.solvers import (
    EVERYTHING,
    SOLVERS,
    Block,
    CoordinateDescent,
    Problem,
    Release,
    ReleasePart,
    Rows,
    Setting,
    register_solver,
    slopes_of,
)

KNEE = 0.1
N_ROWS = 4000


def huber(margins: FloatArray, label: FloatArray) -> FloatArray:
    far = np.abs(margins - label)
    return np.where(far < KNEE, far**2 / 2.0, KNEE * (far - KNEE / 2.0))


def huber_slope(margins: FloatArray, label: FloatArray) -> FloatArray:
    return np.clip(margins - label, -KNEE, KNEE)


@dataclass(frozen=True)
class Concave:
    """The minimax concave penalty: large coefficients are not shrunk."""

    strength: float
    reach: float = 3.0

    def value(self, coef: FloatArray) -> FloatArray:
        size = np.abs(coef)
        within = self.strength * size - size**2 / (2.0 * self.reach)
        return np.where(
            size < self.strength * self.reach, within, self.strength**2 * self.reach / 2.0
        )

    def prox(self, point: FloatArray, step: FloatArray) -> FloatArray:
        size = np.abs(point)
        shrunk = np.maximum(size - step * self.strength, 0.0) / (1.0 - step / self.reach)
        return np.where(size > self.strength * self.reach, point, np.sign(point) * shrunk)


UNIT = 2.0**-20


@dataclass(frozen=True, slots=True)
class LaplaceDescent:
    """Gradient descent; a step releases the sum of the rows' gradients, clipped coordinate-wise.

    Privacy: a row adds a vector of integers of at most ``clip / UNIT`` in each of ``d``
    coordinates, so replacing it moves the sum by at most ``2 d clip / UNIT`` in l1 norm.
    """

    name: ClassVar[str] = "laplace"
    reads_rows: ClassVar[bool] = True
    iterations: int = 30
    step: float = 0.5
    clip: float = KNEE

    def refusal(self, problem: Problem) -> str | None:
        return None if problem.loss.smooth else "a smooth loss is needed"

    def steps(self, n_rows: int, n_features: int) -> int:
        return self.iterations

    def parts(self, n_rows: int, n_features: int) -> tuple[ReleasePart, ...]:
        moved = 2 * n_features * math.ceil(self.clip / UNIT)

        def make(units: int) -> Mechanism:
            scale = math.isqrt(moved**2 * RHO_UNIT // (2 * units)) + 1
            return DiscreteLaplace(scale, moved)

        return (ReleasePart("gradient", Fraction(1), self.iterations, self.iterations, make),)

    def start(self, given: Setting) -> "Steps":
        return Steps(given, given.design.by_rows(), self)


@dataclass(frozen=True)
class Steps:
    given: Setting
    rows: Rows
    solver: LaplaceDescent

    def relaxation(self, k: int) -> float:
        return 1.0

    def target(self, k: int, u: FloatArray, release: Release) -> tuple[Block, FloatArray]:
        problem, solver = self.given.problem, self.solver
        n_rows, n_features = self.given.design.shape

        def compute() -> IntArray:
            X = self.rows.values.reshape(n_rows, n_features) * self.rows.units
            steep = slopes_of(problem.loss, X @ u, self.given.label)
            inside = np.clip(steep[:, None] * X, -solver.clip, solver.clip)
            total: IntArray = np.trunc(inside / UNIT).astype(np.int64).sum(axis=0)
            return total

        noisy = release("gradient", k, self.given.plan.mechanism("gradient"), compute)
        point = u - solver.step * noisy * (UNIT / n_rows)
        return EVERYTHING, problem.penalty.prox(point, np.full(u.size, solver.step), problem.scales)

    def follow(self, block: Block, change: FloatArray | float) -> None:
        pass

    def model(self, u: FloatArray) -> FloatArray:
        return u


@pytest.fixture
def registered() -> Iterator[None]:
    register_loss(Loss("huber", huber, huber_slope, curvature=1.0))
    register_penalty("mcp", Concave)
    register_solver(LaplaceDescent)
    yield
    del LOSSES["huber"], PENALTIES["mcp"], SOLVERS["laplace"]


SCHEMA = """
[[feature]]
name = "x"
low = -1
high = 1
[[feature]]
name = "z"
low = -1
high = 1
[label]
name = "y"
low = -4
high = 4
"""


def table() -> tuple[FloatArray, FloatArray]:
    """Return rows of which a tenth have a label that is far too high."""
    draw = np.random.default_rng(3)
    X = draw.uniform(-1.0, 1.0, (N_ROWS, 2))
    y = 2.0 * X[:, 0] + draw.normal(0.0, 0.1, N_ROWS)
    y[::10] = 4.0
    return X, y


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    X, y = table()
    lines = [f"{a},{b},{c}" for (a, b), c in zip(X, y, strict=True)]
    (tmp_path / "rows.csv").write_text("x,z,y\n" + "\n".join(lines) + "\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    given: dict[str, Any] = {
        "data": tmp_path / "rows.csv",
        "schema": tmp_path / "schema.toml",
        "epsilon": 20,
        "loss": "huber",
        "penalty": "mcp=0.02",
        "solver": "laplace",
        "set": "iterations=40",
    }
    options = [str(part) for key, value in given.items() for part in (f"--{key}", value)]
    return ["fit", *options, "--json"]


@pytest.mark.usefixtures("registered")
def test_the_command_fits_with_all_three(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--out", str(tmp_path / "out"), "--noise", "fast"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["loss"] == "huber"
    assert report["penalty"]["name"] == "mcp"
    assert report["settings"] == {"iterations": 40, "step": 0.5, "clip": KNEE}
    (release,) = report["privacy"]["releases"]
    assert release["mechanism"] == "discrete_laplace"
    # Forty releases of Laplace noise cost 40 (sensitivity / scale)**2 / 2, all of the budget.
    each = (release["l1_sensitivity"] / release["scale"]) ** 2 / 2.0
    assert report["privacy"]["rho"] == pytest.approx(40 * each, rel=1e-6)
    assert 19.9 < report["privacy"]["epsilon"] <= 20.0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<dt>Loss</dt><dd><bdi>huber</bdi></dd>" in page
    assert "mcp penalty" in page
    model = load_model(tmp_path / "out" / "model.json")
    # Noise of a step is 2 * 3 * 0.1 * sqrt(2 * 40 / (2 rho)) / 4000, below 1e-3: least squares has
    # 1.8 for x and an intercept of 0.4, Huber's loss nearly 2 and 0.1; the penalty drops z.
    x, z = model.coef
    assert x == pytest.approx(2.0, abs=0.1)
    assert abs(z) < 0.05
    assert model.intercept < 0.2


@pytest.mark.usefixtures("registered")
def test_a_ledger_charges_them_and_replays(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(20.0)}).close()
    given = [*command, "--out", str(tmp_path / "out"), "--ledger", str(tmp_path / "ledger")]
    assert main(given) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["ledger"]["charged_now_rho"] == pytest.approx(first["privacy"]["rho"], rel=1e-9)
    assert main(given) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["ledger"]["charged_now_rho"] == 0.0
    assert again["model"] == first["model"]


@pytest.mark.usefixtures("registered")
def test_an_estimator_fits_with_all_three() -> None:
    X, y = table()
    model = PrivateLinearRegressor(
        "huber",
        penalty="mcp",
        alpha=0.02,
        solver="laplace",
        epsilon=20.0,
        bounds=(-1.0, 1.0),
        y_bounds=(-4.0, 4.0),
        noise="fast",
        random_state=1,
    ).fit(X, y)
    assert model.n_iter_ == 30
    assert model.privacy_.solver == "laplace"
    assert model.coef_[0] == pytest.approx(2.0, abs=0.2)
    assert abs(model.coef_[1]) < 0.1
    robust = model.intercept_
    squared = model.set_params(loss="squared", solver=CoordinateDescent(clip=8.0)).fit(X, y)
    assert squared.intercept_ > robust + 0.1  # it follows the outliers


@pytest.mark.usefixtures("registered")
def test_the_solver_keeps_the_sensitivity_that_it_prices() -> None:
    # Values lie on the grid, so a row's part is at most clip / UNIT in each coordinate.
    assert (1.0 / GRID) > UNIT
    (part,) = LaplaceDescent(iterations=5).parts(100, 3)
    mechanism = part.make(1000)
    assert isinstance(mechanism, DiscreteLaplace)
    assert mechanism.l1_sensitivity >= 2 * 3 * KNEE / UNIT
    assert mechanism.cost <= 1000


def test_without_registration_they_are_unknown(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--out", str(tmp_path / "out")]) == 3
    assert "no solver is called 'laplace'" in capsys.readouterr().err
    with pytest.raises(ValueError, match="'huber'"):
        PrivateLinearRegressor("huber", bounds=(-1.0, 1.0), y_bounds=(-4.0, 4.0)).fit(*table())
