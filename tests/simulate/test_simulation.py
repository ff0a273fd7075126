"""Made-up data, references and whole jobs in one process."""

import numpy as np
import pytest

from colonnade.bench.vertical.paper import paper
from colonnade.core.fixedpoint import GRID
from colonnade.methods.frank_wolfe.plan import recommend
from colonnade.methods.problem import Loss, Problem
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import STRUCTURES, make
from colonnade.simulate.evaluation.expected import expected_accuracy
from colonnade.simulate.evaluation.references import central_reference, nonprivate
from colonnade.simulate.inprocess.vertical import auc, fit, quality

UNITS = units_down(rho_of(1.0, 1e-6))


def planned(n_rows: int, correlation: float, loss: Loss = Loss.SQUARED) -> Problem:
    features = {f"p{k}": [f"x{i}" for i in range(6)] for k in range(3)}
    return Problem(n_rows, features, UNITS, None, loss, correlation)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_columns_have_the_moments_and_correlations_they_are_made_with(structure: str) -> None:
    made = make(40_000, (4, 5), informative=3, correlation=0.6, seed=1, structure=structure)
    # Standard errors of a correlation are at most 1 / sqrt(40000) = 0.005: six of them.
    found = np.asarray(np.corrcoef(made.columns))
    assert np.abs(made.columns.mean(axis=1)).max() < 0.04
    assert np.abs(made.columns.std(axis=1) - 1.0).max() < 0.03
    off = np.abs(found[~np.eye(9, dtype=bool)])
    expected = {"equicorrelated": [0.6], "independent": [0.0], "factors": [0.0, 0.6]}
    powers = expected.get(structure, [0.6**k for k in range(1, 9)])
    assert all(min(abs(value - power) for power in powers) < 0.03 for value in off)
    assert np.count_nonzero(made.coef) == 3


def test_the_truth_explains_what_the_noise_leaves() -> None:
    made = make(40_000, (4, 5), informative=3, correlation=0.2, noise=0.5, seed=2)
    # 1 / (1 + 0.25), less a little for the clipped tails of the grid.
    assert quality(made.data(), made.truth(), Loss.SQUARED) == pytest.approx(0.8, abs=0.02)


def test_labels_of_the_logistic_loss_are_two_classes_that_the_truth_tells_apart() -> None:
    made = make(20_000, (4,), informative=3, noise=0.5, seed=3, loss=Loss.LOGISTIC)
    assert set(np.unique(made.data().label)) == {-GRID, GRID}
    assert quality(made.data(), made.truth(), Loss.LOGISTIC) > 0.85


def test_the_area_under_the_curve_counts_pairs() -> None:
    draw = np.random.default_rng(0)
    label, score = draw.choice([-1.0, 1.0], 60), draw.integers(0, 8, 60).astype(float)
    pairs = [(a > b) + 0.5 * (a == b) for a in score[label > 0] for b in score[label < 0]]
    assert auc(label, score) == pytest.approx(float(np.mean(pairs)))
    assert auc(np.ones(3), np.arange(3.0)) == 0.5


@pytest.mark.parametrize("wrong", [{"correlation": 1.0}, {"informative": 0}, {"noise": 0.0}])
def test_impossible_data_is_refused(wrong: dict[str, float]) -> None:
    arguments = {"informative": 1, "correlation": 0.1, "noise": 1.0} | wrong
    with pytest.raises(ValueError, match="correlation lies"):
        make(10, (2,), **arguments)  # type: ignore[arg-type]


@pytest.mark.slow
def test_independent_columns_need_no_sharing_to_come_close_to_one_place() -> None:
    made = make(50_000, (6, 6, 6), informative=4, seed=11)
    data = made.data()
    spec = recommend(planned(50_000, 0.0)).spec
    assert all(block.shares == 0 for block in spec.blocks)
    ours = quality(data, fit(data, spec, SeededNoise(1)), Loss.SQUARED)
    central = central_reference(data, loss=Loss.SQUARED, rho_units=UNITS, seed=1)
    best = quality(data, nonprivate(data, Loss.SQUARED), Loss.SQUARED)
    assert best > 0.78
    assert best - 0.03 < quality(data, central, Loss.SQUARED) <= best + 0.001
    assert ours > best - 0.09


def test_sharing_helps_where_columns_are_correlated_and_beats_the_papers_noise() -> None:
    ours: list[float] = []
    alone: list[float] = []
    papers = []
    for seed in (21, 22, 23):
        data = make(50_000, (6, 6, 6), informative=4, correlation=0.4, seed=seed).data()
        problem = planned(50_000, 0.4)
        for shares, found in ((None, ours), (0, alone)):
            spec = recommend(problem, shares=shares).spec
            found.append(quality(data, fit(data, spec, SeededNoise(seed)), Loss.SQUARED))
        model = paper(
            data, epsilon=1.0, delta=1e-6, loss=Loss.SQUARED, radius=0.2, rounds=4, seed=seed
        )
        papers.append(quality(data, model, Loss.SQUARED))
    assert np.median(ours) > np.median(alone) + 0.1
    assert np.median(ours) > np.median(papers) + 0.3


def test_the_logistic_surrogate_ranks_well() -> None:
    made = make(50_000, (6, 6, 6), informative=4, seed=5, loss=Loss.LOGISTIC)
    data, spec = made.data(), recommend(planned(50_000, 0.0, Loss.LOGISTIC)).spec
    ours = quality(data, fit(data, spec, SeededNoise(1)), Loss.LOGISTIC)
    assert ours > quality(data, made.truth(), Loss.LOGISTIC) - 0.03


def test_the_expected_accuracy_holds_for_more_rows_than_are_simulated() -> None:
    small = expected_accuracy(recommend(planned(50_000, 0.0)), seeds=1)
    large = expected_accuracy(recommend(planned(5_000_000, 0.0)), seeds=1)
    assert small["rows_simulated"] == large["rows_simulated"] == 50_000
    for figures in (small, large):
        ours, best = figures["ours"], figures["nonprivate"]
        assert isinstance(ours, float)
        assert isinstance(best, float)
        assert best - 0.1 < ours <= best
