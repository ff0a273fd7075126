"""Both vertical jobs side by side: bounds are bought and charged, and every number is a job's."""

from pathlib import Path

import numpy as np
import pytest

from colonnade.bench.vertical import methods as bench
from colonnade.bench.vertical.coverage import coverage
from colonnade.bench.vertical.figures import write_figures
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.methods.problem import Loss
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import make

TOTAL = units_down(rho_of(1.0, 1e-6))


def small(seed: int, n_rows: int = 40_000) -> bench.Raw:
    made = make(n_rows, (3, 2), informative=3, correlation=0.3, seed=seed)
    return bench.Raw(
        list(made.columns), [Bounds(-10.0, 10.0)] * 5, made.label, Bounds(-10.0, 10.0), made.splits
    )


def test_bounds_are_bought_for_all_columns_and_the_label_and_paid() -> None:
    raw = small(1)
    data, paid = bench.with_bounds(raw, TOTAL, SeededNoise(1), label=True)
    # Both parties pay their part of 5 %, rounded down to a whole number for each of 20 steps.
    assert 0.99 * 0.05 * TOTAL < paid <= 0.05 * TOTAL
    # The 5 % and 95 % points of a normal column, widened by half, are 3.29 deviations off; noise in
    # counts moves them by less than 2 % of the rows: 10 %.
    spread = np.vstack([data.columns, data.label]).std(axis=1) / GRID
    assert np.allclose(spread, 1.0 / 3.29, rtol=0.12)


def test_a_label_of_two_classes_keeps_its_bounds_and_costs_nothing() -> None:
    raw = small(2)
    data, _ = bench.with_bounds(raw, TOTAL, SeededNoise(1), label=False)
    assert data.label.std() / GRID == pytest.approx(raw.label.std() / 10.0, rel=0.01)


def test_bounds_that_would_cost_too_much_are_left_as_declared() -> None:
    raw = small(3, n_rows=1000)
    data, paid = bench.with_bounds(raw, TOTAL, SeededNoise(1), label=True)
    assert paid == 0
    assert data.columns.std() / GRID == pytest.approx(0.1, rel=0.1)


def test_a_row_has_both_jobs_in_both_label_modes(tmp_path: Path) -> None:
    case = bench.Case("small", Loss.SQUARED, small)
    row = bench._row(case, range(7, 9), both_labels=True)
    assert row["seeds"] == 2
    assert row["chosen"] == "moments"
    assert row["bounds_part"] == pytest.approx(0.05, rel=0.02)
    for name in ("frank_wolfe", "moments"):
        assert row[f"{name}_worst"] <= row[name] <= 1.0  # type: ignore[operator]
        assert row[name] > row[f"{name}_sketched"]  # type: ignore[operator]
        assert row[f"{name}_bytes"] > 100  # type: ignore[operator]
        assert row[f"{name}_s"] > 0.0  # type: ignore[operator]
    assert row["moments"] > 0.6  # type: ignore[operator]
    write_figures({"methods": [row, row | {"moments_sketched": None}]}, tmp_path)
    assert (tmp_path / "methods.png").read_bytes().startswith(b"\x89PNG")


def test_a_quick_run_has_fewer_cases_and_cases_need_no_folder() -> None:
    assert [case.name for case in bench._cases(quick=True, folder=None)] == ["equicorrelated d=40"]
    assert len(list(bench._cases(quick=False, folder=None))) == 8


@pytest.mark.slow
def test_coverage_is_counted_apart_for_coefficients_that_matter() -> None:
    rows = coverage(quick=True)
    assert [row["labels"] for row in rows] == 2 * ["shared", "one party's"]
    counted = {"nonzero", "zero", "error", "shares", "odds"}
    for row in rows:
        assert set(row) == {"case", "labels", "seeds", *counted}
        # 12 coefficients that are not zero, and 68 that are.
        assert row["nonzero"] in [round(i / 12, 3) for i in range(13)]
        assert row["zero"] in [round(i / 68, 3) for i in range(69)]
