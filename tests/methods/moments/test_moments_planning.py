"""Plans of moments jobs: within the budget, whatever is asked."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.methods.choice import choose_method
from colonnade.methods.frank_wolfe.plan import recommend as frank_wolfe
from colonnade.methods.moments.plan import recommend
from colonnade.methods.moments.spec import (
    GRAM,
    LABEL,
    MARGINALS,
    MEANS,
    SCREEN,
    SHARE,
)
from colonnade.methods.problem import Labels, Loss, Problem
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import make
from colonnade.simulate.inprocess.moments import fit
from colonnade.simulate.inprocess.vertical import fit as walk
from colonnade.simulate.inprocess.vertical import quality


def problem(
    splits: list[int], *, n_rows: int = 100_000, epsilon: float = 1.0, **more: object
) -> Problem:
    features = {f"p{k}": [f"x{k}_{i}" for i in range(count)] for k, count in enumerate(splits)}
    units = units_down(rho_of(epsilon, 1e-6))
    return Problem(n_rows, features, units, **more)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(
    splits=st.lists(st.integers(1, 60), min_size=1, max_size=10),
    power=st.floats(2.0, 8.0),
    epsilon=st.floats(0.05, 10.0),
    sketched=st.booleans(),
    correlation=st.one_of(st.none(), st.floats(0.0, 0.9)),
    directions=st.one_of(st.none(), st.integers(1, 9)),
)
def test_no_plan_can_cost_more_than_the_budget(
    splits: list[int],
    power: float,
    epsilon: float,
    sketched: bool,
    correlation: float | None,
    directions: int | None,
) -> None:
    asked = problem(
        splits,
        n_rows=int(10**power),
        epsilon=epsilon,
        label_owner="p0" if sketched else None,
        correlation=correlation,
    )
    plan = recommend(asked, directions=directions)
    assert 0 < plan.units() <= asked.rho_units
    assert plan.units() > 0.97 * asked.rho_units  # and nothing much is left over
    assert sum(plan.split().values()) == pytest.approx(plan.units() / asked.rho_units)
    for part in plan.spec.parts:
        assert sum(plan.max_bytes()[part.party].values()) > 0


def test_wide_parties_are_screened_and_narrow_ones_are_not() -> None:
    plan = recommend(problem([100, 5]))
    wide, narrow = plan.spec.parts
    assert plan.spec.kept(wide) < 100
    assert plan.spec.kept(narrow) == 5
    assert SCREEN in plan.spec.max_releases("p0")
    assert SCREEN not in plan.spec.max_releases("p1")
    # Twelve of 31 or 41 columns of 0 and 1 lose more than screening gains.
    assert recommend(problem([48, 24])).spec.keep == 0
    assert recommend(problem([49, 24])).spec.keep == 12
    sketched = problem([25, 24], label_owner="p0")
    assert recommend(sketched).spec.keep == 12
    assert recommend(replace(sketched, loss=Loss.LOGISTIC)).spec.keep == 0


def test_nothing_is_shared_by_one_party_or_where_noise_would_hide_it() -> None:
    alone = recommend(problem([10])).spec
    few = recommend(problem([10, 10], n_rows=3000)).spec
    assert set(alone.max_releases("p0")) == set(few.max_releases("p1")) == {MEANS, GRAM}
    assert SHARE in recommend(problem([10, 10])).spec.max_releases("p0")
    owned = problem([10, 10], n_rows=10_000, label_owner="p1")
    assert set(recommend(owned).spec.max_releases("p0")) == {MEANS, GRAM, MARGINALS}


def test_what_sharing_would_have_cost_goes_to_products_with_the_label() -> None:
    few = recommend(problem([10] * 4, n_rows=3000)).split()
    owned = recommend(problem([10] * 4, n_rows=10_000, label_owner="p0")).split()
    many = recommend(problem([10] * 4, label_owner="p0", epsilon=3.0)).split()
    assert few[GRAM] > 0.85
    assert owned[LABEL] + owned[MARGINALS] > 0.75
    assert many[LABEL] + many[MARGINALS] < 0.65


def test_more_budget_buys_more_directions() -> None:
    counts = [recommend(problem([10] * 4, epsilon=epsilon)).spec.directions for epsilon in (1, 8)]
    assert counts[0] < counts[1]


def test_what_is_given_stands() -> None:
    plan = recommend(
        problem([30, 9], loss=Loss.LOGISTIC, label_owner="p1"),
        directions=4,
        probes=7,
        sketch_dim=512,
        radius=1.25,
        keep=10,
    )
    spec = plan.spec
    assert (spec.directions, spec.probes, spec.sketch_dim, spec.keep) == (4, 7, 512, 10)
    assert (spec.radius, spec.loss, spec.labels) == (1.25, Loss.LOGISTIC, Labels.SKETCHED)
    assert [part.holds_label for part in spec.parts] == [False, True]
    assert plan.summary()["kept_features"] == {"p0": 10, "p1": 9}


def test_a_category_is_one_feature_when_a_party_is_wide() -> None:
    # Of 56 columns, 50 are the levels of one category: seven features, of which all are kept.
    groups = {"p0": ["region"] * 50 + [""] * 6}
    assert recommend(problem([56, 5], groups=groups)).spec.keep == 0
    assert recommend(problem([56, 5])).spec.keep == 12
    wide = {"p0": ["region"] * 4 + [""] * 52}
    assert recommend(problem([56, 5], groups=wide)).spec.keep == 12


# Measured over ten other seeds: medians 0.77, 0.75, 0.70 and 0.79, worst seeds 0.05 below.
FLOORS = {"equicorrelated": 0.7, "factors": 0.65, "ar": 0.6, "independent": 0.75}
CORRELATIONS = {"equicorrelated": 0.3, "factors": 0.5, "ar": 0.6, "independent": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize("structure", FLOORS)
def test_a_plan_reaches_the_accuracy_that_was_measured(structure: str) -> None:
    found = []
    for seed in (7, 8):
        made = make(
            100_000,
            (10,) * 4,
            informative=6,
            correlation=CORRELATIONS[structure],
            seed=seed,
            structure=structure,
        )
        data, plan = made.data(), recommend(problem([10] * 4))
        found.append(quality(data, fit(data, plan.spec, SeededNoise(seed)), Loss.SQUARED))
    assert float(np.mean(found)) > FLOORS[structure]


def test_moments_are_chosen_unless_a_sketched_label_is_lost_in_noise() -> None:
    assert choose_method(problem([10] * 4)) == "moments"
    assert choose_method(problem([10] * 4, n_rows=300, epsilon=0.3)) == "moments"
    assert choose_method(problem([5])) == "moments"
    assert choose_method(problem([10] * 4, label_owner="p0")) == "moments"
    assert choose_method(problem([10] * 4, n_rows=3000, label_owner="p0")) == "frank-wolfe"
    assert choose_method(problem([10] * 4, n_rows=3000, epsilon=5.0, label_owner="p0")) == "moments"
    assert choose_method(problem([10] * 8, n_rows=10_000, label_owner="p0")) == "frank-wolfe"
    absent = replace(problem([10] * 8, n_rows=10_000, label_owner="p0"), presence=True)
    assert choose_method(absent) == "moments"  # Frank-Wolfe knows no absence


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_rows", "owner"), [(3000, None), (30_000, None), (30_000, "p0"), (1000, "p0")]
)
def test_what_is_chosen_does_better_on_tables_that_the_rule_has_not_seen(
    n_rows: int, owner: str | None
) -> None:
    # Means over three shapes of two tables each. Moments were ahead by 0.1 or more in the first
    # three settings; in the last both are about nothing, and a few unlucky jobs can make 0.2.
    asked = problem([10] * 4, n_rows=n_rows, label_owner=owner)
    found: dict[str, list[float]] = {"moments": [], "frank-wolfe": []}
    for structure, correlation in (("equicorrelated", 0.3), ("factors", 0.5), ("ar", 0.6)):
        for seed in (61, 62):
            data = make(
                n_rows,
                (10,) * 4,
                informative=6,
                correlation=correlation,
                seed=seed,
                structure=structure,
            ).data()
            mine = fit(data, recommend(asked).spec, SeededNoise(seed))
            other = walk(data, frank_wolfe(asked).spec, SeededNoise(seed))
            found["moments"].append(quality(data, mine, Loss.SQUARED))
            found["frank-wolfe"].append(quality(data, other, Loss.SQUARED))
    means = {name: float(np.mean(scores)) for name, scores in found.items()}
    chosen = choose_method(asked)
    (rest,) = set(means) - {chosen}
    assert means[chosen] > means[rest] - (0.2 if n_rows == 1000 else 0.0)


# What the worst of eight tables must reach where noise is large, each by one thing that calms it.
@pytest.mark.parametrize(
    ("n_rows", "owner", "structure", "first", "least"),
    [
        # What parties have in common through the label counts once: 0.47 with it, -0.1 without.
        (3000, None, "factors", 500, 0.3),
        # Eigenvalues below the noise are raised to it: 0.05 with that, -0.2 without.
        (1000, None, "equicorrelated", 500, -0.05),
        # A lucky draw of noise does not pass for signal: -0.01 with that, -0.8 without.
        (6000, "p0", "independent", 3100, -0.1),
    ],
)
def test_noise_that_is_larger_than_the_signal_does_no_harm(
    n_rows: int, owner: str | None, structure: str, first: int, least: float
) -> None:
    spec = recommend(problem([10] * 4, n_rows=n_rows, label_owner=owner)).spec
    found = []
    for seed in range(first, first + 8):
        made = make(
            n_rows,
            (10,) * 4,
            informative=6,
            correlation=CORRELATIONS[structure],
            seed=seed,
            structure=structure,
        )
        data = made.data()
        model = fit(data, spec, SeededNoise(seed), job=f"g{seed}")
        found.append(quality(data, model, Loss.SQUARED))
    assert min(found) > least
