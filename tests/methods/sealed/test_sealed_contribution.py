"""A sealed job's products tell what each party's columns explain."""

import numpy as np
import pytest
from support.sealed import problem_of, small_data

from colonnade.methods.sealed.plan import recommend
from colonnade.methods.sealed.solver.steps import SealedSolver
from colonnade.privacy.simulation import SeededNoise
from colonnade.server.methods.sealed.contribution import sealed_contribution

pytest.importorskip("seal")

from colonnade.simulate.inprocess.sealed import run


@pytest.mark.slow
def test_shares_of_a_sealed_job_are_those_of_least_squares_on_the_joined_table() -> None:
    data = small_data((4, 4, 4), n_rows=20_000, seed=3)
    spec = recommend(problem_of(data)).spec
    solver = SealedSolver(spec)
    assert sealed_contribution(solver, solver.start()) is None
    state, _ = run(data, spec, SeededNoise(4))
    told = sealed_contribution(solver, state)
    assert told is not None
    exact = np.asarray(np.corrcoef(np.vstack([data.columns, data.label]) / 2**14))
    for place, split in enumerate(data.splits):
        others = [each for each in range(12) if each not in split]
        found = told[f"p{place}"]
        for name, own in (("alone", list(split)), ("without", others)):
            target = exact[-1, own]
            share = float(target @ np.linalg.solve(exact[np.ix_(own, own)], target))
            # The penalty takes about a hundredth of what least squares finds.
            assert abs(found[name] - share) < 3.0 * found[f"{name}_error"] + 0.02
    assert max(each["alone"] for each in told.values()) > 0.2
