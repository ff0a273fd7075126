"""A plan says beforehand whose columns noise will hide."""

import pytest

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
