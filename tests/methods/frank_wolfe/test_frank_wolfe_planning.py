"""The planner: within its budget, quick, and sharing only where that helps."""

import json
import sys
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.methods.base import MethodPlan
from colonnade.methods.frank_wolfe.plan import noise_of, recommend
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec, PartySampling
from colonnade.methods.problem import Labels, Loss, Problem
from colonnade.privacy.accounting import rho_of, units_down


def problem(
    n_rows: int = 100_000,
    parties: int = 4,
    width: int = 15,
    epsilon: float = 1.0,
    *,
    owner: str | None = None,
    loss: Loss = Loss.SQUARED,
    correlation: float | None = None,
) -> Problem:
    features = {f"p{k}": [f"x{i}" for i in range(width)] for k in range(parties)}
    units = units_down(rho_of(epsilon, 1e-6))
    return Problem(n_rows, features, units, owner, loss, correlation)


def total(plan: MethodPlan[FrankWolfeSpec]) -> int:
    return sum(plan.spec.max_units(block.party) for block in plan.spec.blocks)


@settings(max_examples=150, deadline=None)
@given(
    n_rows=st.integers(1_000, 10_000_000),
    parties=st.integers(1, 16),
    width=st.integers(1, 1000),
    epsilon=st.floats(0.1, 10.0),
    owned=st.booleans(),
    loss=st.sampled_from(Loss),
    correlation=st.one_of(st.none(), st.floats(0.0, 0.9)),
    sampling=st.sampled_from([None, "all", "serial", "nice"]),
)
def test_a_plan_exists_and_spends_its_budget_and_never_more(
    n_rows: int,
    parties: int,
    width: int,
    epsilon: float,
    owned: bool,
    loss: Loss,
    correlation: float | None,
    sampling: str | None,
) -> None:
    asked = problem(
        n_rows,
        parties,
        width,
        epsilon,
        owner="p0" if owned else None,
        loss=loss,
        correlation=correlation,
    )
    plan = recommend(asked, sampling=sampling)
    assert 0.95 * asked.rho_units < total(plan) <= asked.rho_units
    assert json.loads(json.dumps(plan.summary()))["budget_split"]
    sketched = owned and parties > 1
    assert plan.spec.labels is (Labels.SKETCHED if sketched else Labels.SHARED)


def calls(asked: Problem) -> int:
    """Return how many functions a plan calls: what it takes, on any machine."""
    seen = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal seen
        seen += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        recommend(asked).summary()
    finally:
        sys.setprofile(before)
    return seen


def test_a_plan_is_little_work_however_large_the_problem() -> None:
    # It tries some hundreds of settings, about 9,000 calls; a loop over the 16,000 columns, let
    # alone over rows, would pass twice that.
    for asked in (problem(10**5, 16, 15), problem(10**7, 16, 1000), problem(10**9, 16, 1000)):
        assert 0 < calls(asked) < 15_000


@pytest.mark.parametrize(
    ("asked", "shares"),
    [
        (problem(correlation=0.0), False),
        (problem(correlation=0.1), False),
        (problem(correlation=0.3), True),
        (problem(), True),
        (problem(10**6, correlation=0.1), True),  # more rows make sketches sharper
        (problem(1_000, correlation=0.3), False),  # and fewer make them useless
        (problem(parties=1, correlation=0.9), False),
        (problem(epsilon=0.1, n_rows=10_000, correlation=0.3), False),
    ],
)
def test_parties_share_where_it_helps_and_nowhere_else(asked: Problem, shares: bool) -> None:
    spec = recommend(asked).spec
    assert all((block.shares > 0) == shares for block in spec.blocks)
    assert (spec.local_rounds > 0) == shares


def test_what_is_asked_for_stands() -> None:
    plan = recommend(
        problem(correlation=0.3),
        rounds=9,
        shares=2,
        sketch_dim=300,
        radius=0.7,
        sampling="nice",
        parties_per_round=3,
        features_per_round=5,
    )
    spec = plan.spec
    assert (spec.rounds, spec.sketch_dim, spec.parties_per_round) == (9, 300, 3)
    assert (spec.sampling, spec.features_per_round) == (PartySampling.NICE, 5)
    assert {(block.shares, block.radius) for block in spec.blocks} == {(2, 0.7)}
    assert total(plan) <= plan.problem.rho_units


def test_more_budget_means_less_noise_of_every_kind() -> None:
    less, more = (
        noise_of(recommend(problem(epsilon=epsilon, correlation=0.3, owner="p0"), rounds=20).spec)
        for epsilon in (1.0, 4.0)
    )
    assert less.keys() == more.keys() == {"mean", "select", "share", "label"}
    assert all(more[kind] < less[kind] for kind in less)


def test_the_most_bytes_are_those_of_the_bodies() -> None:
    plan = recommend(problem(correlation=0.3))
    most, spec = plan.max_bytes()["p0"], plan.spec
    assert most["select"] == 4 * spec.rounds
    assert most["share"] == 3 * spec.body_bytes("p0", "share")
    assert most["means"] == spec.body_bytes("p0", "means")


@pytest.mark.parametrize(
    "wrong",
    [
        {"features": {}},
        {"features": {"a": []}},
        {"n_rows": 0},
        {"rho_units": 0},
        {"label_owner": "z"},
        {"correlation": 1.0},
    ],
)
def test_an_impossible_problem_is_refused(wrong: dict[str, object]) -> None:
    right: dict[str, object] = {"n_rows": 100, "features": {"a": ["x"]}, "rho_units": 2**40}
    Problem(**right)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"needs|party|lie"):
        Problem(**{**right, **wrong})  # type: ignore[arg-type]


def test_more_rounds_than_the_budget_holds_are_refused() -> None:
    features = {"a": ["x"], "b": ["y"]}
    with pytest.raises(ValueError, match=r"small|little"):
        recommend(Problem(100, features, 5_000), rounds=4_000)
