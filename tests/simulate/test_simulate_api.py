"""Simulations from Python run the federation that the command runs, from any table."""

import importlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from colonnade.client import AdmmOptions, JobOptions
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel
from colonnade.simulate import Simulation, simulate, simulate_admm

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fork_server")]

ROOT = Path(__file__).parents[2]
PARTIES = {"hospital": ["age", "bmi"], "laboratory": ["iron", "zinc"]}
BOUNDS = {
    "age": (-3, 3),
    "bmi": (-3, 3),
    "iron": (-3, 3),
    "zinc": (-3, 3),
    "cost": (-8, 8),
}


def people(n_rows: int = 4000) -> pd.DataFrame:
    """Make a table whose label follows from one column of each party, up to a little noise."""
    draw = np.random.default_rng(5)
    frame = pd.DataFrame(draw.normal(size=(n_rows, 4)), columns=["age", "iron", "bmi", "zinc"])
    frame["ward"] = draw.integers(0, 60, n_rows)
    frame["cost"] = 2 * frame["age"] - frame["iron"] + draw.normal(0, 0.3, n_rows)
    return frame.assign(note="not a number")


@pytest.fixture(scope="module")
def twice() -> Simulation:
    return simulate(
        people(),
        target="cost",
        parties=PARTIES,
        label_owner="laboratory",
        epsilon=20.0,
        seeds=[3, 4],
        bounds=BOUNDS,
    )


def test_columns_and_label_go_where_they_were_said_to_go(twice: Simulation) -> None:
    model = twice.model
    assert [each.full_name for each in model.features] == [
        f"{party}.{name}" for party, names in PARTIES.items() for name in names
    ]
    assert all(-3.0 <= each.low < each.high <= 3.0 for each in model.features)
    assert twice.report["labels"] == "sketched"
    assert twice.report["privacy"]["label"]["who"] == "laboratory"
    assert twice.report.state == "finished"
    assert twice.report["private"] is True
    assert 0.0 < twice.report.epsilon <= 20.0


def test_the_model_is_of_use_and_predicts_a_frame_by_names(twice: Simulation) -> None:
    frame = people()
    shuffled = frame[["note", "cost", "zinc", "iron", "age", "bmi"]]
    predicted = twice.model.predict(shuffled)
    # At epsilon 20 noise is small beside the signal; a model that is zero has no correlation.
    assert np.corrcoef(predicted, frame["cost"])[0, 1] > 0.8
    coefficients = twice.model.coefficients().set_index("feature")["coef"]
    assert coefficients["age"] > abs(coefficients["bmi"])
    assert coefficients["iron"] < -abs(coefficients["zinc"])


def test_several_seeds_give_medians_and_the_run_of_the_median(twice: Simulation) -> None:
    assert [run.seed for run in twice.runs] == [3, 4]
    first, second = (run.quality for run in twice.runs)
    assert first.nonprivate != second.nonprivate  # other rows were held out
    assert twice.quality.nonprivate == (first.nonprivate + second.nonprivate) / 2
    assert twice.quality.ours == (first.ours + second.ours) / 2
    assert twice.typical.quality.ours == min(first.ours, second.ours)
    assert twice.report is twice.typical.report
    assert (twice.quality.metric, twice.quality.rows, twice.quality.n_rows) == (
        "r2",
        "held-out",
        800,
    )


def test_the_plot_shows_features_and_scores(twice: Simulation, tmp_path: Path) -> None:
    figure = twice.plot(tmp_path / "found.svg")
    left, right = figure.axes
    assert [tick.get_text() for tick in left.get_yticklabels()] == ["age", "bmi", "iron", "zinc"]
    heights = [bar.get_height() for bar in right.patches]  # type: ignore[attr-defined]
    quality = twice.quality
    assert heights == [quality.ours, quality.central, quality.nonprivate]
    assert "<svg" in (tmp_path / "found.svg").read_text()


class Stream:
    """Only the Arrow C stream interface."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def as_arrow(frame: pd.DataFrame) -> Any:
    import duckdb

    return Stream(duckdb.from_df(frame))


def as_polars(frame: pd.DataFrame) -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame({name: frame[name].to_numpy() for name in frame})


def as_mapping(frame: pd.DataFrame) -> Any:
    return {name: frame[name].to_numpy() for name in frame}


@pytest.mark.parametrize("convert", [as_arrow, as_polars, as_mapping])
def test_tables_of_other_libraries_give_the_same_columns(
    convert: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured: list[Any] = []

    def stop(_folder: Path, job: Any, **_: Any) -> None:
        captured.append(job)
        raise BadInput("seen")

    api = importlib.import_module("colonnade.simulate.api")
    monkeypatch.setattr(api, "run_columns", stop)
    frame = people(200)
    for given in (frame, convert(frame)):
        with pytest.raises(BadInput, match="seen"):
            simulate(given, target="cost", parties=PARTIES, bounds=BOUNDS, label_owner="laboratory")
    ours, theirs = captured
    assert [site.label is not None for site in ours.divided.fitted] == [False, True]
    for one, other in zip(ours.divided.fitted, theirs.divided.fitted, strict=True):
        assert one.party == other.party
        labels = [[] if each.label is None else [each.label] for each in (one, other)]
        columns = zip([*one.features, *labels[0]], [*other.features, *labels[1]], strict=True)
        for mine, its in columns:
            assert (mine.name, mine.bounds) == (its.name, its.bounds)
            np.testing.assert_array_equal(mine.values, its.values)


def test_a_file_is_simulated_without_pandas_and_nothing_is_left_behind(tmp_path: Path) -> None:
    people(1500).to_csv(tmp_path / "people.csv", index=False)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = """if True:
        import sys
        sys.modules["pandas"] = None
        from colonnade.simulate import simulate
        found = simulate("people.csv", target="cost", parties=2, epsilon=5.0, holdout=0.0)
        print(found.quality.rows, sorted(found.model.coefficients()))
        assert sys.modules["pandas"] is None
    """
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            "PYTHONPATH": ":".join(str(ROOT / name) for name in SOURCES),
            "TMPDIR": str(scratch),
            "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
        },
    )
    assert run.returncode == 0, run.stderr
    names = ["coef", "coef_scaled", "feature", "fill", "group", "high", "low", "party"]
    assert run.stdout.strip() == f"fitted {names}"
    assert list(scratch.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "numba") == [
        "people.csv",
        "scratch",
    ]


SOURCES = ("proto", "common", "server", "party", "sim")


def test_the_package_is_quick_to_import() -> None:
    code = (
        "import sys, colonnade.simulate as s; s.__all__;"
        "print([name for name in ('numpy', 'duckdb', 'grpc') if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(str(ROOT / name) for name in SOURCES)},
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(("clients", "count", "drop_out"), [("ward", 60, 0.0), (40, 40, 0.5)])
def test_clients_are_those_of_a_column_or_as_many_as_were_said(
    clients: str | int, count: int, drop_out: float
) -> None:
    frame = people().drop(columns=["note"])
    found = simulate_admm(
        frame if clients == "ward" else frame.drop(columns=["ward"]),
        target="cost",
        clients=clients,
        epsilon=64.0,
        options=AdmmOptions(rounds=4),
        bounds=BOUNDS,
        hosts=2,
        drop_out=drop_out,
    )
    about = found.report["clients"]
    assert sum(len(each) for each in about["answers_by_client"].values()) == count
    assert about["local"]["max"]["epsilon"] <= 64.0
    # Noise and absences are not seeded: where half of the clients are away, all of the 32 that are
    # asked at least answer with a chance of 2**-32.
    asked, answered = (sum(each[name] for each in about["rounds"]) for name in ("asked", "answers"))
    assert (answered < asked) == (drop_out > 0.0)
    assert found.report["simulation"]["hosts"] == 2
    assert isinstance(found.model, LinearModel)
    assert {each.name for each in found.model.features} == {"age", "iron", "bmi", "zinc"}
    assert found.quality.metric == "r2"
    assert len(found.plot().axes) == 2


def test_what_a_simulation_gave_is_printed_in_a_line(twice: Simulation) -> None:
    assert twice.report.job_id in repr(twice)
    assert len(repr(twice)) < 400


def refused(function: Any = simulate, **changes: Any) -> BadInput:
    settings: dict[str, Any] = {"target": "cost", "bounds": BOUNDS}
    settings |= {"parties": PARTIES} if function is simulate else {"clients": 20}
    settings |= changes
    with pytest.raises(BadInput) as error:
        function(settings.pop("data", people(100)), **settings)
    text = str(error.value)
    assert len(text.splitlines()) == 1
    assert "--" not in text
    assert tempfile.gettempdir() not in text
    return error.value


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 0.9}, "delta"),
        ({"delta": "1e-6"}, "delta"),
        ({"loss": "hinge"}, "loss"),
        ({"label_owner": "bank"}, "label_owner"),
        ({"bounds_share": 1.0}, "bounds_share"),
        ({"holdout": 1.0}, "holdout"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"parties": 0}, "parties"),
        ({"parties": {}}, "parties"),
        ({"parties": ["hospital", "laboratory"]}, "parties"),
        ({"parties": {"hospital": "age"}}, "parties"),
        ({"schema": "schema.toml"}, "bounds"),
        ({"bounds": [(0, 1)]}, "bounds"),
        ({"bounds": {"age": 3}}, "bounds"),
        ({"bounds": {name: BOUNDS[name] for name in BOUNDS if name != "iron"}}, "bounds"),
        ({"options": JobOptions(rounds=0)}, "rounds"),
    ],
)
def test_a_wrong_argument_is_named(changes: dict[str, Any], parameter: str) -> None:
    error = refused(**changes)
    assert isinstance(error, BadArgument)
    assert error.parameter == parameter


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"clients": 0}, "clients"),
        ({"hosts": 99}, "hosts"),
        ({"drop_out": 1.0}, "drop_out"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"options": AdmmOptions(step=2.0)}, "step"),
    ],
)
def test_a_wrong_argument_of_a_job_over_clients_is_named(
    changes: dict[str, Any], parameter: str
) -> None:
    error = refused(simulate_admm, **changes)
    assert isinstance(error, BadArgument)
    assert error.parameter == parameter


def test_a_table_that_does_not_fit_is_refused_in_one_line() -> None:
    assert "the data has no column 'price' to learn" in str(refused(target="price", bounds=None))
    missing = {"hospital": ["age"], "laboratory": ["gold"]}
    assert "no column 'gold'" in str(refused(parties=missing, bounds=None))
    assert "no named columns" in str(refused(data=[[1.0, 2.0]]))
    assert "nowhere.csv: cannot read the source" in str(refused(data="nowhere.csv"))
    assert "bounds" in str(refused(bounds=BOUNDS | {"age": (3, -3)}))
    text = str(refused(simulate_admm, clients="house"))
    assert "no column 'house' of clients" in text
