"""The solvers' benchmark measures what it says."""

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from colonnade.bench.solvers import cases, figures, one_record, others, peers, speed, table2
from colonnade.cli import bench_solvers
from colonnade.core.errors import BadInput
from colonnade.optim.solvers.coordinate import CoordinateDescent
from colonnade.optim.solvers.iteration import Noiseless
from colonnade.optim.solvers.losses import LOGISTIC, SQUARED
from colonnade.optim.solvers.penalties import lasso, ridge
from colonnade.optim.solvers.solve import make_plan, solve


def quiet(text: str) -> None:
    assert text


def small(kind: str = "squared") -> cases.Case:
    draw = np.random.default_rng(3)
    X = draw.normal(size=(400, 4)) * [1.0, 10.0, 0.1, 3.0]
    y = X @ [1.0, 0.1, 5.0, 0.0] + draw.normal(size=400)
    if kind == "squared":
        return cases.make_case("small", X, y, SQUARED, lasso(0.01), epsilon=1e6)
    return cases.make_case("small", X, np.sign(y), LOGISTIC, ridge(0.01), epsilon=1e6)


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_the_c_loop_and_the_solver_find_the_same_model(kind: str, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    reference = speed.compile_reference(tmp_path)
    assert reference is not None
    case = small(kind)
    solver = CoordinateDescent(passes=20, squares=case.squares, clip=4.0)
    plan = make_plan(solver, case.design.shape, epsilon=1e6, delta=1e-6)  # hardly any noise
    ours = solve(case.problem, case.design, case.y, solver, plan=plan, release=Noiseless())
    theirs = reference.run(case, solver, plan)
    np.testing.assert_allclose(ours, theirs, atol=1e-2 * np.abs(ours).max())
    assert np.abs(ours).max() > 0.1


def test_a_case_without_noise_has_no_error_and_the_zero_model_has_its_own() -> None:
    case = small()
    solver = CoordinateDescent(passes=50, squares=case.squares, clip=16.0)
    plan = make_plan(solver, case.design.shape, epsilon=1.0, delta=1e-6)
    coef = solve(case.problem, case.design, case.y, solver, plan=plan, release=Noiseless())
    assert 0.0 <= case.relative_error(coef) < 1e-4  # columns are rounded, the optimum is not
    assert case.zero == pytest.approx(np.mean(case.y**2) / 2 / case.best - 1)


def test_one_record_at_a_time_learns_with_little_noise_and_not_with_much() -> None:
    case = replace(small(), epsilon=50.0)
    plan = table2.plan_of(case, "sgd", 20)

    def error(step: float, clip: float) -> float:
        return one_record.one_record_error(case, plan, passes=20, step=step, clip=clip, seed=1)

    assert error(1e-3, 1.0) < 0.5 * case.zero
    assert error(1.0, 1e6) > case.zero


def test_tuning_takes_the_best_of_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table2, "error", lambda *setting, seed: abs(setting[3][0] - 1.0) + seed)
    case = small()
    assert table2.tune(case, "cd", 2, table2.plan_of(case, "cd", 2))[0] == 1.0


def test_the_sparse_lasso_is_drawn_by_its_seed() -> None:
    one, same, other = (cases._sparse(seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one[1], same[1])
    assert (one[1] != other[1]).any()


def test_the_papers_rows_are_printed_where_it_has_them() -> None:
    assert table2._printed("electricity raw", "cd", 50) == 0.0020
    assert table2._printed("electricity raw", "sgd", 2) == 0.2047
    assert table2._printed("electricity raw", "sgd batches", 2) is None
    for name in cases.case_names():
        assert len(cases.PAPER[name].cd) == len(cases.PAPER[name].sgd) == len(cases.PASSES)


def test_every_cell_of_the_table_was_tuned() -> None:
    for name in cases.case_names():
        assert set(table2.TUNED[name]) == set(table2.SOLVERS)
        assert all(len(found) == len(cases.PASSES) for found in table2.TUNED[name].values())


def test_a_table_that_is_not_at_hand_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--data"):
        cases.load_case("california raw", tmp_path)
    with pytest.raises(BadInput, match="--data"):
        others.greedy_rows(None, seeds=1, progress=quiet)


def test_growth_and_peers_report_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = speed.measure_growth(((2000, 3),), progress=quiet)
    assert row["seconds_per_pass"] > 0.0
    assert row["ns_per_value"] == pytest.approx(1e9 * row["seconds_per_pass"] / 6000)
    monkeypatch.setattr(peers, "problem", lambda draw=peers.problem: draw(20_000))
    found = {row["library"]: row for row in peers.measure_peers(fits=1, progress=quiet)}
    assert found["scikit-learn, not private"]["r2"] == pytest.approx(0.7, abs=0.02)
    assert found["colonnade"]["r2"] > 0.6


def test_the_command_prints_its_rows_and_writes_the_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "data": "small",
            "solver": solver,
            "passes": passes,
            "relative_error": 0.1 / passes,
            "spread": 0.0,
            "paper": 0.2,
            "zero_model": 0.5,
            "step": 1.0,
            "clip": 1.0,
        }
        for solver in table2.SOLVERS
        for passes in (2, 5)
    ]
    monkeypatch.setattr(table2, "table2", lambda *_, **__: rows)
    parser = argparse.ArgumentParser()
    bench_solvers.register_solvers(parser.add_subparsers())
    options = ["solvers", "--paper", "dpcd", "--out", str(tmp_path / "out")]
    for more in ([], ["--json"]):
        parsed = parser.parse_args([*options, *more])
        assert parsed.handler(parsed) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "sgd batches" in "".join(shown)
    assert json.loads(shown[-1]) == {"table2": rows}
    assert json.loads((tmp_path / "out" / "solvers.json").read_text()) == {"table2": rows}
    assert (tmp_path / "out" / "table2.png").read_bytes().startswith(b"\x89PNG")
    assert set(figures._COLOURS) == set(table2.SOLVERS)
