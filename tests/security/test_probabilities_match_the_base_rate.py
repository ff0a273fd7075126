"""Probabilities of a vertical logistic job are probabilities, whatever the base rate is."""

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from support.tables import read

from colonnade.bench.vertical.tables import TABLES
from colonnade.core.arrays import FloatArray, Int16Array
from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.methods.frank_wolfe import plan as frank_wolfe
from colonnade.methods.frank_wolfe.residual import COEF_UNIT
from colonnade.methods.frank_wolfe.solver.steps import FrankWolfeSolver
from colonnade.methods.moments import plan as moments
from colonnade.methods.problem import Loss, Problem
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import BOUND, make
from colonnade.simulate.evaluation.quality import probabilities
from colonnade.simulate.inprocess import moments as moments_inprocess
from colonnade.simulate.inprocess import vertical as inprocess
from colonnade.simulate.inprocess.vertical import Data, ScaledModel, auc, grid


@dataclass(frozen=True, slots=True)
class Fitted:
    """A job's logits of held-out rows, and those of its least squares, doubled as an expansion."""

    positive: np.ndarray
    logits: FloatArray
    plain: FloatArray

    @property
    def slope(self) -> float:
        """Slope of a logistic regression of the class on the logits: 1 if they are calibrated."""
        design = np.column_stack([self.logits, np.ones(self.logits.size)])
        coef = np.array([1.0, 0.0])
        for _ in range(30):
            p = 1.0 / (1.0 + np.exp(-design @ coef))
            hessian = design.T @ (design * (p * (1.0 - p))[:, None])
            coef = coef + np.linalg.solve(hessian, design.T @ (self.positive - p))
        return float(coef[0])


def fitted(
    columns: Int16Array, label: Int16Array, *, kind: str, epsilon: float, owner: str | None
) -> Fitted:
    """Fit a job of four parties to four fifths of the rows."""
    order = np.random.default_rng(1).permutation(label.size)
    splits = tuple(tuple(part.tolist()) for part in np.array_split(np.arange(len(columns)), 4))
    left_out, seen = (
        Data(np.ascontiguousarray(columns[:, rows]), label[rows], splits)
        for rows in np.split(order, [label.size // 5])
    )
    problem = Problem(
        n_rows=seen.label.size,
        features={f"p{k}": [f"x{i}" for i in split] for k, split in enumerate(splits)},
        rho_units=units_down(rho_of(epsilon, 1e-6)),
        label_owner=owner,
        loss=Loss.LOGISTIC,
    )
    if kind == "moments":
        spec = moments.recommend(problem).spec
        state, _ = moments_inprocess.run(seen, spec, SeededNoise(1))
        model, constant = moments_inprocess.model_of(spec, state), state.intercept / COEF_UNIT
        coefs = state.coef
    else:
        first = frank_wolfe.recommend(problem).spec
        iterate, _ = inprocess.run(seen, first, SeededNoise(1))
        model, coefs = inprocess.model_of(first, iterate), iterate.coef
        constant = FrankWolfeSolver.of(first, "").cross.intercept(iterate.coef, iterate.means)
    plain = ScaledModel([2.0 * coef / COEF_UNIT for coef in coefs.values()], 2.0 * constant)
    return Fitted(left_out.label > 0, model.predict(left_out), plain.predict(left_out))


@functools.cache
def made(structure: str, correlation: float, shift: float) -> tuple[Int16Array, Int16Array]:
    """Return 60,000 rows whose logits have deviation 2 about ``shift``."""
    table = make(
        60_000, (6,) * 4, informative=6, correlation=correlation, seed=7, structure=structure
    )
    draw = np.random.default_rng(8)
    logits = 2.0 * table.coef @ table.columns / np.std(table.coef @ table.columns) + shift
    label = np.where(draw.random(60_000) < 1.0 / (1.0 + np.exp(-logits)), GRID, -GRID)
    return grid(table.columns / BOUND), label.astype(np.int16)


# Prices, demands and the date are fractions of their ranges; days of the week are numbered.
_BOUNDS = {"electricity": {"day": (1.0, 7.0), "": (0.0, 1.0)}, "phishing": {"": (-1.0, 1.0)}}


@functools.cache
def public(name: str) -> tuple[Int16Array, Int16Array]:
    header, rows = read(name)
    known = TABLES[name].bounds if name in TABLES else _BOUNDS[name]
    columns = [
        quantise(
            column, Bounds(*next(b for k, b in known.items() if title.startswith(k))), grid=GRID
        )
        for title, column in zip(header[:-1], rows.T, strict=False)
    ]
    return np.stack(columns), np.where(rows[:, -1] > 0, GRID, -GRID).astype(np.int16)


def check_better(found: Fitted, *, mean: float, above_base: bool = True) -> None:
    """Compare with the base rate, with its log loss, and with what was not calibrated."""
    now = probabilities(found.positive, found.logits)
    before = probabilities(found.positive, found.plain)
    assert now["mean_probability"] == pytest.approx(now["base_rate"], abs=mean)
    if above_base:
        assert now["log_loss"] < now["base_rate_log_loss"]
    assert now["log_loss"] < before["log_loss"] + 1e-3
    label = np.where(found.positive, 1.0, -1.0)
    assert auc(label, found.logits) == pytest.approx(auc(label, found.plain), abs=1e-12)


# A mean over 12,000 held-out rows errs by at most 0.0046, the released base rate by half a percent
# of 2 (`_MEAN_NOISE`), and a score whose classes are not normal moves it by as much again: 0.015.
# Without calibration the error is 0.06 at these base rates of 0.12 to 0.15.
@pytest.mark.slow
@pytest.mark.parametrize("owner", [None, "p0"])
@pytest.mark.parametrize("kind", ["moments", "frank-wolfe"])
@pytest.mark.parametrize(("structure", "correlation"), [("equicorrelated", 0.3), ("ar", 0.6)])
def test_made_up_tables_have_their_base_rate(
    structure: str, correlation: float, kind: str, owner: str | None
) -> None:
    columns, label = made(structure, correlation, -3.0)
    found = fitted(columns, label, kind=kind, epsilon=3.0, owner=owner)
    assert 0.1 < found.positive.mean() < 0.2
    check_better(found, mean=0.015)
    plain = probabilities(found.positive, found.plain)
    assert plain["mean_probability"] > plain["base_rate"] + 0.04


@pytest.mark.slow
@pytest.mark.parametrize("owner", [None, "p0"])
@pytest.mark.parametrize("epsilon", [3.0, 50.0])
@pytest.mark.parametrize("shift", [-3.0, 0.0])
def test_logits_of_moments_have_their_scale(
    shift: float, epsilon: float, owner: str | None
) -> None:
    # The share that is explained is known up to 0.05 to 0.1, and half of its error, an error of the
    # covariance and what clipping takes are left off: the slope lies above 1 rather than below. It
    # is 4 to 6 without calibration at a base rate of 0.13, and 2 at 0.5.
    columns, label = made("equicorrelated", 0.3, shift)
    found = fitted(columns, label, kind="moments", epsilon=epsilon, owner=owner)
    check_better(found, mean=0.015)
    assert 0.8 < found.slope < 1.6


# Columns here are neither normal nor few: classes' scores are skewed, and up to 0.03 is left of
# what was 0.05 to 0.06 on adult. Log loss must not suffer anywhere. Frank-Wolfe with one party's
# label can do worse than the base rate: its score is mostly noise there, and nothing that it
# releases tells how much, so that its scale cannot be lowered.
@pytest.mark.parametrize("owner", [None, "p0"])
@pytest.mark.parametrize("kind", ["moments", "frank-wolfe"])
@pytest.mark.parametrize("name", ["adult", "credit_default", "phishing"])
def test_public_tables_have_their_base_rate(name: str, kind: str, owner: str | None) -> None:
    columns, label = public(name)
    found = fitted(columns, label, kind=kind, epsilon=1.0, owner=owner)
    check_better(found, mean=0.03, above_base=kind == "moments" or owner is None)


@pytest.mark.parametrize("name", ["adult", "credit_default", "phishing"])
def test_logits_of_public_tables_have_about_their_scale(name: str) -> None:
    columns, label = public(name)
    found = fitted(columns, label, kind="moments", epsilon=3.0, owner=None)
    check_better(found, mean=0.03)
    assert 0.5 < found.slope < 1.5


# Much budget leaves the shape of the score as the only error of a mean probability. Normal classes
# leave 0.024 on adult with Frank-Wolfe (rare categories) and 0.061 on electricity (prices). The
# mean over 6,512 and 9,062 held-out rows errs by 0.005: three standard errors, and 0.03 for tails
# of prices that no release shows.
@pytest.mark.parametrize(
    ("name", "kind", "mean"),
    [
        ("adult", "frank-wolfe", 0.015),
        ("adult", "moments", 0.015),
        ("electricity", "frank-wolfe", 0.015),
        ("electricity", "moments", 0.045),
    ],
)
def test_much_budget_gives_skewed_tables_their_base_rate(name: str, kind: str, mean: float) -> None:
    columns, label = public(name)
    check_better(fitted(columns, label, kind=kind, epsilon=50.0, owner=None), mean=mean)
