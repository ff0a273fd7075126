"""The utility benchmark: every method is scored, slopes are those of the points, tables load."""

from pathlib import Path

import pytest

from colonnade.bench.vertical import utility as bench
from colonnade.bench.vertical.figures import write_figures
from colonnade.bench.vertical.methods import Case
from colonnade.methods.problem import Loss
from colonnade.simulate.inprocess.vertical import Data


def tiny(seed: int) -> Data:
    return bench._made(3000, 0.0, seed)


def test_every_method_is_scored_on_every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("tiny", Loss.SQUARED, tiny, 0.0)
    monkeypatch.setattr(bench, "_cases", lambda quick, folder: iter([case]))
    (row,) = bench.utility(True, None)
    assert set(row) == {"case", "metric", *bench.METHODS}
    # Nobody beats the fit without privacy by more than its penalty costs.
    scores = [row[method] for method in bench.METHODS]
    assert all(isinstance(score, float) for score in scores)
    assert max(scores) <= row["nonprivate"] + 0.01  # type: ignore[operator, type-var]
    assert row["central"] > row["paper"]  # type: ignore[operator]


def test_a_slope_is_that_of_the_line_through_the_points() -> None:
    sizes = [1000, 10_000, 100_000]
    assert bench._slope(sizes, [n**-0.5 for n in sizes]) == pytest.approx(-0.5)
    assert bench._slope(sizes, [3.0 * n for n in sizes]) == pytest.approx(1.0)


def test_figures_are_written_for_what_was_measured(tmp_path: Path) -> None:
    result = {
        "utility": [
            {"case": "a", "metric": "r2", **dict.fromkeys(bench.METHODS, 0.5)} | {"paper": None}
        ],
        "scaling": {
            "n": [1000, 10_000],
            "error": [0.5, 0.1],
            "payload_bytes": [100, 400],
            "error_slope": -0.7,
            "payload_slope": 0.6,
        },
    }
    write_figures(result, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"bench.json", "utility.png", "scaling.png"}
    assert (tmp_path / "out" / "scaling.png").read_bytes().startswith(b"\x89PNG")


def test_cases_need_no_folder() -> None:
    names = [case.name for case in bench._cases(quick=False, folder=None)]
    assert len(names) == 3
    assert all("correlation" in name for name in names)
