"""A plan says beforehand whose columns noise will hide."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from colonnade.core.fixedpoint import GRID
from colonnade.methods.moments.expected import expected_idle, label_error
from colonnade.methods.moments.plan import recommend
from colonnade.methods.moments.solver.estimates import local_of
from colonnade.methods.problem import Problem
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import make
from colonnade.simulate.inprocess.moments import run


@pytest.mark.parametrize("owner", [None, "p0"])
@pytest.mark.parametrize("epsilon", [0.2, 3.0])
def test_errors_known_beforehand_are_those_of_the_releases(
    owner: str | None, epsilon: float
) -> None:
    data = make(5000, (5,) * 3, informative=6, correlation=0.3, seed=8).data()
    problem = Problem(
        n_rows=5000,
        features={f"p{k}": [f"x{i}" for i in split] for k, split in enumerate(data.splits)},
        rho_units=units_down(rho_of(epsilon, 1e-6)),
        label_owner=owner,
    )
    spec = recommend(problem).spec
    state, _ = run(data, spec, SeededNoise(8))
    for part in spec.parts:
        # Of what the ball leaves of the variances, which is 0.9 or so, nothing is known beforehand.
        found = local_of(spec, part, state.bodies).target_error
        assert label_error(spec, part) == pytest.approx(found, rel=0.25)
    used = {party for party, coef in state.coef.items() if coef.any()}
    if epsilon > 1.0:
        assert expected_idle(spec) == {}
        assert used == {"p0", "p1", "p2"}
    elif owner:
        assert set(expected_idle(spec)) == {"p0", "p1", "p2"} - used


def test_errors_known_beforehand_count_the_people_whom_both_parties_have() -> None:
    data = make(20_000, (4,) * 3, informative=6, correlation=0.3, seed=9).data()
    has = np.random.default_rng(9).random((3, 20_000)) < 0.5
    somewhere = has.any(axis=0)
    people = {
        tuple(f"p{place}" for place in group): int(has[list(group)].all(axis=0).sum())
        for size in (1, 2)
        for group in itertools.combinations(range(3), size)
    }
    aligned = replace(
        data,
        columns=np.ascontiguousarray(data.columns[:, somewhere]),
        label=data.label[somewhere],
        presence=tuple((each[somewhere] * GRID).astype(np.int16) for each in has),
    )
    problem = Problem(
        n_rows=int(somewhere.sum()),
        features={f"p{k}": [f"x{i}" for i in split] for k, split in enumerate(data.splits)},
        rho_units=units_down(rho_of(1.0, 1e-6)),
        label_owner="p0",
        presence=True,
        people=people,
    )
    spec = recommend(problem).spec
    state, _ = run(aligned, spec, SeededNoise(9))
    for part in spec.parts[1:]:
        # A half of a half: 3.5 times the error of complete tables, so that 0.3 tells them apart.
        found = local_of(spec, part, state.bodies).target_error
        assert label_error(spec, part) == pytest.approx(found, rel=0.3)
