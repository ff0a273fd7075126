"""Losses, penalties and solvers from outside are solved like built-in ones, or refused."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.solvers import ROW, Recorder, neighbours, resolved, sparse_of, toy

from colonnade.core.arrays import FloatArray
from colonnade.linear.losses import (
    CUSTOM_CODE,
    HINGE,
    LOGISTIC,
    LOSSES,
    SQUARED,
    Loss,
    find_loss,
    register_loss,
)
from colonnade.linear.penalties import (
    PENALTIES,
    CustomPenalty,
    lasso,
    no_penalty,
    register_penalty,
    ridge,
)
from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection
from colonnade.solvers.algorithms.admm import Admm
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.algorithms.dual import DualDescent
from colonnade.solvers.algorithms.frank_wolfe import FrankWolfe
from colonnade.solvers.algorithms.greedy import GreedyDescent
from colonnade.solvers.algorithms.sgd import StochasticDescent
from colonnade.solvers.iteration import Noiseless
from colonnade.solvers.problem import Problem, plain
from colonnade.solvers.registry import SOLVERS, Solver, Unsuitable, check, register_solver
from colonnade.solvers.solve import make_plan, solve

BUILT_IN = [SQUARED, LOGISTIC, HINGE]
SHORT: list[Solver] = [
    CoordinateDescent(passes=3),
    GreedyDescent(iterations=6),
    StochasticDescent(passes=3, batch_size="full"),
    FrankWolfe(iterations=6),
    Admm(iterations=4),
]


class SoftThreshold:
    """The l1 penalty, as somebody else would write it."""

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def value(self, coef: FloatArray) -> FloatArray:
        return self.strength * np.abs(coef)

    def prox(self, point: FloatArray, step: FloatArray) -> FloatArray:
        return np.sign(point) * np.maximum(np.abs(point) - step * self.strength, 0.0)


def run(solver: Solver, problem: Problem, label: FloatArray, *, sparse: bool = False) -> FloatArray:
    design = toy(zeros=0.4).design
    solver = resolved(solver, problem.loss)
    return solve(
        problem,
        sparse_of(design) if sparse else design,
        label,
        solver,
        plan=make_plan(solver, design.shape, epsilon=1.0, delta=1e-6),
        release=Noiseless(),
    )


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", BUILT_IN, ids=lambda loss: loss.name)
@pytest.mark.parametrize("solver", SHORT, ids=lambda solver: solver.name)
def test_a_loss_that_the_kernels_do_not_know_gives_the_same_model(
    solver: Solver, loss: Loss, sparse: bool
) -> None:
    data = toy(zeros=0.4)
    label = data.sign if loss.classifies else data.target
    penalty = no_penalty() if isinstance(solver, FrankWolfe) else ridge(0.1)
    problem = plain(loss, penalty, 5)
    if solver.refusal(problem) is not None:
        pytest.skip("not for this loss")
    custom = replace(problem, loss=replace(loss, code=CUSTOM_CODE))
    known = run(solver, problem, label, sparse=sparse)
    # The compiled sigmoid has ten digits; a truncated term may differ by one in 2**30.
    np.testing.assert_allclose(run(solver, custom, label, sparse=sparse), known, atol=1e-8)
    assert np.abs(known).max() > 0.01


@pytest.mark.parametrize("solver", SHORT[:1] + SHORT[2:3] + SHORT[4:], ids=lambda s: s.name)
def test_a_penalty_from_outside_gives_the_same_model_in_any_units(solver: Solver) -> None:
    scales = np.array([1.0, 0.5, 2.0, 1.0, 0.0])  # of users' units; the last is an intercept
    data = toy(zeros=0.4)
    mine = CustomPenalty("soft", 0.05, SoftThreshold(0.05)).rescaled(2.0)
    theirs = lasso(0.05).rescaled(2.0)
    found = run(solver, Problem(SQUARED, mine, scales), data.target)
    known = run(solver, Problem(SQUARED, theirs, scales), data.target)
    np.testing.assert_allclose(found, known, atol=1e-9)
    assert np.count_nonzero(found) < 5
    assert mine.value(found, scales) == pytest.approx(theirs.value(known, scales), rel=1e-6)


def test_solvers_that_need_more_of_a_loss_or_a_penalty_refuse_one_from_outside() -> None:
    soft = CustomPenalty("soft", 0.05, SoftThreshold(0.05))
    odd = replace(SQUARED, name="odd", code=CUSTOM_CODE)
    for solver, problem in (
        (DualDescent(), plain(odd, ridge(0.1), 3)),
        (DualDescent(), plain(SQUARED, soft, 3)),
        (GreedyDescent(), plain(SQUARED, soft, 3)),
        (FrankWolfe(), plain(SQUARED, soft, 3)),
    ):
        with pytest.raises(Unsuitable):
            check(problem, solver)


@pytest.mark.parametrize("worst", [math.nan, math.inf, -1e300], ids=str)
@pytest.mark.parametrize(
    "solver",
    [
        CoordinateDescent(passes=2, clip=0.1),
        StochasticDescent(passes=3, batch_size="full", clip=0.01),
        Admm(iterations=3, clip=0.01),
        FrankWolfe(iterations=3, clip=0.1),
    ],
    ids=lambda solver: solver.name,
)
def test_whatever_a_slope_returns_one_row_moves_a_sum_by_no_more_than_it_is_priced_for(
    solver: Solver, worst: float
) -> None:
    # One row's slope is wild on one table and small on its neighbour, where values differ too.
    sums = []
    for design, wild in zip(neighbours(), (1e-3, worst), strict=True):

        def slope(margins: FloatArray, label: FloatArray, wild: float = wild) -> FloatArray:
            steep = np.array(margins - label)
            steep[np.flatnonzero(label == 0.5)] = wild
            return steep

        label = np.zeros(60)
        label[ROW] = 0.5
        loss = Loss("wild", lambda m, y: m * 0.0, slope, curvature=1.0)
        recorder = Recorder()
        plan = make_plan(solver, design.shape, epsilon=1.0, delta=1e-6)
        penalty = no_penalty() if isinstance(solver, FrankWolfe) else ridge(0.1)
        solve(plain(loss, penalty, 3), design, label, solver, plan=plan, release=recorder)
        sums.append(next(each for each in recorder.asked if each[0] != "smoothness"))
    (_, mechanism, one), (_, _, two) = sums
    moved = np.abs(one - two)
    assert moved.any()
    if isinstance(mechanism, DiscreteGaussian):
        assert int((moved.astype(object) ** 2).sum()) <= mechanism.l2_sensitivity2
    else:
        assert isinstance(mechanism, SignedSelection)
        assert moved.max() <= mechanism.sensitivity


def square(m: FloatArray, y: FloatArray) -> FloatArray:
    return (m - y) ** 2 / 2.0


GOOD: dict[str, Any] = {
    "name": "mine",
    "value": square,
    "slope": lambda m, y: m - y,
    "curvature": 1.0,
}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"slope": lambda m, y: m - y + 1e-3 * np.mean(m)}, "mix rows"),
        ({"value": lambda m, y: (m - y) ** 2}, "derivative"),
        ({"slope": lambda m, y: y - m}, "not convex"),
        ({"curvature": 0.5}, "curvature"),
        ({"curvature": 0.0}, "positive"),
        ({"slope": lambda m, y: 1.0}, "each row"),
        ({"value": lambda m, y: m * np.inf}, "finite"),
        ({"response": "softmax"}, "response"),
        ({"name": "squared"}, "already registered"),
        ({"name": "My Loss"}, "lower-case"),
    ],
    ids=lambda part: next(iter(part)) if isinstance(part, dict) else part,
)
def test_a_loss_that_is_not_what_it_says_is_refused(wrong: dict[str, Any], words: str) -> None:
    before = dict(LOSSES)
    with pytest.raises(ValueError, match=words), np.errstate(invalid="ignore"):
        register_loss(Loss(**GOOD | wrong))
    assert before == LOSSES


def test_the_same_loss_may_be_registered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = Loss(**GOOD)
    monkeypatch.delitem(LOSSES, "mine", raising=False)
    assert register_loss(loss) is register_loss(loss) is find_loss("mine") is find_loss(loss)
    with pytest.raises(ValueError, match="already registered"):
        register_loss(replace(loss, curvature=2.0))
    del LOSSES["mine"]


def test_a_penalty_whose_proximal_map_is_wrong_is_refused() -> None:
    class Hard(SoftThreshold):
        def prox(self, point: FloatArray, step: FloatArray) -> FloatArray:
            return np.where(np.abs(point) > step * self.strength, point, 0.0)

    before = dict(PENALTIES)
    with pytest.raises(ValueError, match="minimise"):
        register_penalty("hard", Hard)
    with pytest.raises(ValueError, match="already registered"):
        register_penalty("l1", SoftThreshold)
    assert before == PENALTIES


def test_a_solver_without_defaults_or_methods_is_refused() -> None:
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Open:
        radius: float

    @dataclass(frozen=True)
    class Empty:
        name = "empty"

    before = dict(SOLVERS)
    with pytest.raises(ValueError, match="radius"):
        register_solver(Open)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reads_rows, refusal, steps, parts"):
        register_solver(Empty)  # type: ignore[arg-type]
    assert before == SOLVERS
