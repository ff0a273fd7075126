"""The fit command: from a file to a model, charged to a ledger when one is given."""

import errno
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import handle
from support.ledgers import MECHANISM, digest, new_ledger

from colonnade.cli.fit import input as fit_input
from colonnade.cli.parser import WrongUsage
from colonnade.core.errors import BadInput, BudgetExceeded, NotBound, RequestConflict
from colonnade.data.model import load_model
from colonnade.data.schema import parse_schema
from colonnade.ledger.create import open_ledger
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.privacy.accounting import epsilon_of, format_upper_bound, rho_of, units_down
from colonnade.report.parts import Chart
from colonnade.report.schema_fit import Trail
from colonnade.report.views.fit import path_section
from colonnade.solvers import fit as solver_fit
from colonnade.solvers.algorithms.dual import DualDescent
from colonnade.solvers.budgets import sampled_epsilon
from colonnade.solvers.registry import SOLVERS

SCHEMA = """
[[feature]]
name = "age"
low = 20
high = 80
[[feature]]
name = "dose"
low = -2
high = 6
[label]
name = "y"
low = 0
high = 200
"""
N_ROWS = 3000


def run(*arguments: object) -> int:
    return handle("fit", *arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fit")
    draw = np.random.default_rng(2)
    age, dose = draw.uniform(20, 80, N_ROWS), draw.uniform(-2, 6, N_ROWS)
    y = 20.0 + 1.5 * age + 5.0 * dose + draw.normal(0.0, 5.0, N_ROWS)
    lines = [f"{a},{b},{c},{int(c > 120)}" for a, b, c in zip(age, dose, y, strict=True)]
    (made / "rows.csv").write_text("age,dose,y,high\n" + "\n".join(lines) + "\n")
    (made / "schema.toml").write_text(SCHEMA)
    (made / "classes.toml").write_text(
        SCHEMA.replace('name = "y"\nlow = 0\nhigh = 200', 'name = "high"\nlow = 0\nhigh = 1')
    )
    return made


def options(folder: Path, out: Path, **more: object) -> list[object]:
    given: dict[str, object] = {
        "data": folder / "rows.csv",
        "schema": folder / "schema.toml",
        "out": out,
    }
    given |= {"epsilon": 5} | more
    return [part for key, value in given.items() for part in (f"--{key}", value)]


def test_a_fit_writes_a_model_that_predicts_and_a_report(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*options(folder, tmp_path / "out", l2=1e-6), "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report == json.loads((tmp_path / "out" / "report.json").read_text())
    model = load_model(tmp_path / "out" / "model.json")
    assert model.private
    predicted = model.predict({"age": np.array([30.0, 70.0]), "dose": np.array([0.0, 2.0])})
    # Epsilon 5 on 3000 rows: noise of about 1 in the label's units, ten deviations are allowed.
    np.testing.assert_allclose(predicted, [65.0, 135.0], atol=10.0)
    assert report["privacy"]["private"]
    assert 4.9 < report["privacy"]["epsilon"] <= 5.0
    assert report["ledger"] is None


def test_a_classifier_gives_probabilities_and_text_names_the_guarantee(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = options(folder, tmp_path, schema=folder / "classes.toml", loss="logistic", l2=1e-4)
    assert run(*given) == 0
    shown = capsys.readouterr().out
    assert re.search(r"privacy +epsilon 5 at delta 1e-06, one row replaced", shown)
    assert re.search(r"ledger +none: another fit of these rows adds to this one", shown)
    assert all(name in shown for name in ("age", "dose", "(intercept)", "model.json"))
    model = load_model(tmp_path / "model.json")
    low, high = model.predict({"age": np.array([25.0, 78.0]), "dose": np.array([-1.0, 5.0])})
    assert low < 0.3
    assert high > 0.7


def test_a_support_vector_machine_predicts_classes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = options(folder, tmp_path, schema=folder / "classes.toml", loss="hinge", l2=1e-4)
    assert run(*given, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["solver"].startswith("StochasticDescent")
    model = load_model(tmp_path / "model.json")
    predicted = model.predict({"age": np.array([25.0, 78.0]), "dose": np.array([-1.0, 5.0])})
    np.testing.assert_array_equal(predicted, [0.0, 1.0])


@pytest.mark.parametrize("charged", [False, True], ids=["free", "charged"])
def test_defaults_are_chosen_once_in_a_fit(
    charged: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    for name in ("with_defaults", "check_promise", "make_plan"):
        original = getattr(solver_fit, name)

        def counted(*args: Any, name: str = name, original: Any = original, **more: Any) -> Any:
            calls.append(name)
            return original(*args, **more)

        monkeypatch.setattr(solver_fit, name, counted)
    new_ledger("sqlite", tmp_path, caps={"": units_down(5.0)}).close()
    ledger = {"ledger": tmp_path / "ledger"} if charged else {}
    assert run(*options(folder, tmp_path / "out", **ledger)) == 0
    assert sorted(calls) == ["check_promise", "make_plan", "with_defaults"]


def test_a_box_bounds_every_coefficient_in_the_files_units(folder: Path, tmp_path: Path) -> None:
    assert run(*options(folder, tmp_path, box=1.2, noise="off"), "--set", "refinements=12") == 0
    coef = load_model(tmp_path / "model.json").coef
    # Without the box they are 1.5 and 5.
    assert coef == pytest.approx((1.2, 1.2), rel=1e-9)


@pytest.mark.parametrize("noise", ["fast", "off"])
def test_other_noise_is_marked_and_no_ledger_takes_it(
    noise: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*options(folder, tmp_path, noise=noise)) == 0
    assert "NOT PRIVATE" in capsys.readouterr().out
    assert not load_model(tmp_path / "model.json").private
    page = (tmp_path / "report.html").read_text()
    assert "NOT PRIVATE" in page
    assert "Nothing is promised" in page
    assert "ε\u00a05.000</data> <small>at most" not in page
    assert "No ε" in page
    with pytest.raises(WrongUsage):
        run(*options(folder, tmp_path, noise=noise, ledger=tmp_path / "ledger"))


def test_a_gram_matrix_tells_a_path_and_intervals_for_the_same_price(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*options(folder, tmp_path), "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in report["privacy"]["releases"]] == [
        "moments",
        "gram",
        "products",
        "step",
    ]
    told = report["moments"]
    assert [each["name"] for each in told["features"]] == ["age", "dose"]
    assert len(told["path"]["penalties"]) == len(told["path"]["coefs"]) > 10
    # 1.5 and 5 a unit, in deviations: 17.3 and 2.31 of the columns, 28.9 of the label.
    for low, high, truth in zip(
        told["intervals"]["low"], told["intervals"]["high"], (0.9, 0.4), strict=True
    ):
        assert low - 0.1 < truth < high + 0.1
    assert "More from the same releases" in (tmp_path / "report.html").read_text()


def test_the_page_states_the_promise_and_shows_the_path_and_the_coefficients(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(*options(folder, tmp_path, l2=1e-6, solver="cd"), "--name", "<b>wards</b>", "--json")
        == 0
    )
    report = json.loads(capsys.readouterr().out)
    page = (tmp_path / "report.html").read_text()
    assert report["privacy"]["statement"] in page
    assert "NOT PRIVATE" not in page
    assert "&lt;b&gt;wards" in page
    assert "<b>wards" not in page
    for key in ("Coefficients after each step", "Distance to the final model by step"):
        assert f'role="img" aria-label="{key}' in page
    assert page.count('<tr data-party="local"') == 2
    path = report["path"]
    # The path ends at the model, so the plots show the releases' model and nothing else.
    coef = {each["name"]: each["coef_scaled"] for each in report["model"]["features"]}
    assert path["coef"][-1] == [coef[name] for name in path["features"]]
    n_steps = 3 * report["settings"]["passes"]  # two features and the intercept
    assert path["steps"] == list(range(1, n_steps + 1))
    assert report["settings"]["clip"] == 0.5
    assert "Y: the model uses both columns" in page
    assert "coordinate descent" in page
    assert "CoordinateDescent" not in page
    assert "in a batch" not in page  # all rows take part in every step


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, *_):
        if name.startswith(("colonnade.server", "matplotlib")):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Absent())
from colonnade.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_party_has_its_page_without_the_coordinators_code_and_without_matplotlib(
    folder: Path, tmp_path: Path
) -> None:
    given = [str(part) for part in options(folder, tmp_path, l2=1e-6)]
    subprocess.run([sys.executable, "-c", WITHOUT, "fit", *given], check=True, capture_output=True)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["model.json", "report.html", "report.json"]
    assert 'id="path-plot"' in (tmp_path / "report.html").read_text()


def names_of(coef: list[float]) -> list[str]:
    """Return the names at the ends of a path of features x0, x1 and so on."""
    features = tuple(f"x{j}" for j in range(len(coef)))
    start = tuple(0.0 for _ in coef)
    section = path_section(Trail(features=features, steps=(1, 2), coef=(start, tuple(coef))))
    assert section is not None
    (grid,) = section.blocks
    chart = grid.blocks[0]  # type: ignore[union-attr]
    assert isinstance(chart, Chart)
    return [name for _, name, _ in chart.names]


def test_only_the_largest_coefficients_that_are_not_zero_are_named_in_the_path() -> None:
    assert names_of([1.0 / (j + 1) for j in range(14)]) == [f"x{j}" for j in range(8)]
    assert names_of([2.0, -1.0, *[0.0] * 12]) == ["x0", "x1"]


def test_a_ledger_is_charged_once_and_the_same_command_replays(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cap = units_down(rho_of(5.0, 1e-6))
    new_ledger("sqlite", tmp_path, caps={"": cap}).close()
    given = [
        *options(folder, tmp_path / "one", solver="cd", ledger=tmp_path / "ledger"),
        "--set",
        "passes=3",
    ]
    assert run(*given, "--json") == 0
    first = json.loads(capsys.readouterr().out)
    charged = first["ledger"]["charged_now_rho"]
    assert first["privacy"]["rho"] == pytest.approx(charged, rel=1e-12)
    assert 4.9 < epsilon_of(charged, 1e-6) <= 5.0
    assert run(*given) == 0
    assert "a replay" in capsys.readouterr().out
    again = json.loads((tmp_path / "one" / "report.json").read_text())
    assert again["ledger"]["charged_now_rho"] == 0.0
    assert again["model"] == first["model"]
    given[given.index(tmp_path / "one")] = tmp_path / "two"
    with pytest.raises(BudgetExceeded):
        run(*given, "--name", "another")


def test_a_model_that_cannot_be_written_is_paid_for_once(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(rho_of(5.0, 1e-6))}).close()

    def full(self: Path, text: str, **_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(BadInput, match="--out"):
            run(*options(folder, tmp_path / "full", ledger=tmp_path / "ledger"))
    assert run(*options(folder, tmp_path / "elsewhere", ledger=tmp_path / "ledger"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["ledger"]["charged_now_rho"] == 0.0


def test_a_ledger_is_bound_to_the_first_rows_and_others_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(5.0)}).close()
    lines = (folder / "rows.csv").read_text().splitlines()
    other = tmp_path / "other.csv"
    other.write_text("\n".join([lines[0], "77,5,150,1", *lines[2:]]) + "\n")
    ledger = {"ledger": tmp_path / "ledger", "epsilon": 1}
    one = [*options(folder, tmp_path / "one", solver="cd", **ledger), "--set", "passes=1", "--json"]
    two = [
        *options(folder, tmp_path / "two", data=other, solver="cd", **ledger),
        "--set",
        "passes=1",
        "--json",
    ]
    run(*one)
    left = json.loads(capsys.readouterr().out)["ledger"]["left_rho"]
    with pytest.raises(NotBound, match="--bind") as refused:
        run(*two)
    assert "\n" not in str(refused.value)
    # The same order on rows that are now bound is neither answered with the first rows' model nor
    # drawn again; under another name it is a new fit.
    with pytest.raises(RequestConflict):
        run(*two, "--bind", "one row was corrected")
    assert not (tmp_path / "two").exists()
    run(*two, "--bind", "one row was corrected", "--name", "second")
    assert json.loads(capsys.readouterr().out)["ledger"]["left_rho"] < left
    with pytest.raises(NotBound):
        run(*one)


def test_a_fit_that_makes_no_sense_sets_nothing_aside(folder: Path, tmp_path: Path) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(5.0)}).close()
    ledger = tmp_path / "ledger"
    for more in ({"loss": "hinge", "solver": "cd"}, {"solver": "dual", "l2": 1}, {"epsilon": 99}):
        with pytest.raises((BadInput, BudgetExceeded)):
            run(*options(folder, tmp_path / "out", ledger=ledger, **more))
    opened = open_ledger(LedgerFiles(ledger, None))
    assert opened.state.reserved.get("", 0) == opened.budget().spent == 0
    assert opened.state.bound is None
    opened.close()


def test_a_sampled_fit_is_charged_in_full_at_a_ledger(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(5.0)}).close()
    given = options(folder, tmp_path / "out", solver="sgd", ledger=tmp_path / "ledger")
    assert run(*given, "--set", "passes=1", "--set", "batch_size=600", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    privacy = report["privacy"]
    assert privacy["sampling_rate"] == pytest.approx(0.2, rel=0.1)
    charged = report["ledger"]["charged_now_rho"]
    assert privacy["rho"] == pytest.approx(charged, rel=1e-12)
    # Beside the charge: what the same noise promises if the batches stay secret.
    (step,) = privacy["releases"]
    amplified = sampled_epsilon(
        rate=privacy["sampling_rate"],
        steps=step["count"],
        multiplier=(step["sigma2"] * 4 / step["l2_sensitivity2"]) ** 0.5,
        delta=privacy["delta"],
    )
    assert privacy["amplified_epsilon"] == pytest.approx(amplified, rel=1e-9)
    assert privacy["amplified_epsilon"] < 0.6 * privacy["epsilon"]
    epsilon = format_upper_bound(privacy["amplified_epsilon"])
    told = f"epsilon {epsilon} if nobody learns who was in which"
    page = (tmp_path / "out" / "report.html").read_text()
    assert "the charge takes no credit for that" in page
    assert "a row is in a batch with probability" in page
    assert run(*given, "--set", "passes=1", "--set", "batch_size=600") == 0
    shown = capsys.readouterr().out
    assert told in shown
    assert "the charge takes no credit" in shown


def test_a_party_fits_on_its_ingested_table(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = tmp_path / "tables"
    ingest(parse_schema(SCHEMA, origin="schema"), FileSource(folder / "rows.csv"), out=tables)
    run("--data", tables, "--out", tmp_path / "out", "--epsilon", 5, "--no-intercept", "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["n_rows"] == N_ROWS
    assert report["model"]["intercept_scaled"] == 0.0


@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - {"cd", "sgd"}))
def test_every_solver_can_be_chosen(solver: str, folder: Path, tmp_path: Path) -> None:
    l2 = {} if solver == "frank_wolfe" else {"l2": 0.001}
    assert run(*options(folder, tmp_path, solver=solver, **l2), "--no-intercept") == 0


@pytest.mark.parametrize("option", ["loss", "solver"])
def test_an_unknown_name_is_refused_with_the_known_ones(
    option: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=f"{option} .*'newton'"):
        run(*options(folder, tmp_path, **{option: "newton"}))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"set": "speed=3"}, "'speed'"),
        ({"solver": "cd", "set": "passes=many"}, "a whole number"),
        ({"set": "passes"}, "NAME=VALUE"),
        ({"solver": "cd", "set": "passes=9999999"}, "10000000"),
        ({"epsilon": 1e9}, "1000"),
        ({"solver": "frank_wolfe", "loss": "hinge"}, "hinge"),
        ({"solver": "frank_wolfe", "l2": 0.1}, "radius"),
        ({"data": "."}, "folder"),
        ({"set": "clip=-1"}, "positive"),
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 2}, "delta"),
        ({"l1": -1}, "strength"),
        ({"solver": "dual", "l2": 0.1}, "intercept"),
        ({"solver": "gcd", "l1": 0.1}, "l1"),
        ({"solver": "frank_wolfe"}, "intercept"),
        ({"solver": "frank_wolfe", "l1": 0.1}, "radius"),
        ({"loss": "hinge", "solver": "cd"}, "hinge"),
        ({"box": 0}, "box"),
        ({"penalty": "l1=much"}, "write NAME=STRENGTH"),
        ({"penalty": "l3=1"}, "'l3'"),
        ({"penalty": "l1=1", "l2": 1}, "stands alone"),
        ({"solver": "sgd", "set": "batch_size=some"}, "full"),
        ({"name": ""}, "printable"),
        ({"name": "a\nb"}, "printable"),
        ({"name": "x" * 201}, "printable"),
    ],
    ids=str,
)
def test_what_cannot_be_fitted_is_refused_in_one_line(
    more: dict[str, Any], words: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=words) as refused:
        run(*options(folder, tmp_path, **more))
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "model.json").exists()


def harmed(cell: str, *, row: int, column: int, folder: Path, out: Path) -> Path:
    """Write the table again with one cell of text replaced."""
    lines = (folder / "rows.csv").read_text().splitlines()
    cells = lines[row].split(",")
    cells[column] = cell
    lines[row] = ",".join(cells)
    path = out / "harmed.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("low = 20\n", "", "low: "),  # bounds are never guessed
        ('"dose"', '"weight"', "'weight'"),
        ("low = 20", "low = 90", "high"),
        ("high = 80", "high = inf", "finite"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_and_nothing_is_charged(
    old: str, new: str, words: str, folder: Path, tmp_path: Path
) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(5.0)}).close()
    (tmp_path / "s.toml").write_text(SCHEMA.replace(old, new, 1))
    given = options(folder, tmp_path / "out", schema=tmp_path / "s.toml")
    with pytest.raises(BadInput, match=words) as refused:
        run(*given, "--ledger", tmp_path / "ledger")
    assert "\n" not in str(refused.value)
    assert untouched(tmp_path)


def test_text_among_numbers_is_refused_without_showing_it(folder: Path, tmp_path: Path) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(5.0)}).close()
    data = harmed("Mrs Quill", row=8, column=1, folder=folder, out=tmp_path)
    with pytest.raises(BadInput, match="'dose'") as refused:
        run(*options(folder, tmp_path / "out", data=data, ledger=tmp_path / "ledger"))
    assert "Quill" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert untouched(tmp_path)


@pytest.mark.parametrize("column", [1, 2], ids=["a feature", "the label"])
def test_a_missing_number_takes_its_fill_and_refuses_nothing(
    column: int, folder: Path, tmp_path: Path
) -> None:
    # A refusal would tell of one row; the fill is the middle of the bounds.
    middle = "2" if column == 1 else "100"
    for number, cell in enumerate(("nan", "", middle)):
        data = harmed(cell, row=8, column=column, folder=folder, out=tmp_path)
        given = options(folder, tmp_path / str(number), data=data, noise="off")
        assert run(*given) == 0
    models = [(tmp_path / str(number) / "model.json").read_text() for number in range(3)]
    assert models[0] == models[1] == models[2]


def test_one_class_alone_is_fitted_like_two(folder: Path, tmp_path: Path) -> None:
    # Which classes occur is a fact about the rows; the declared bounds are public.
    lines = (folder / "rows.csv").read_text().splitlines()
    ones = [line.rpartition(",")[0] + ",1" for line in lines[1:]]
    (tmp_path / "ones.csv").write_text("\n".join([lines[0], *ones]) + "\n")
    given = {"data": tmp_path / "ones.csv", "schema": folder / "classes.toml", "loss": "logistic"}
    assert run(*options(folder, tmp_path / "out", **given)) == 0
    assert load_model(tmp_path / "out" / "model.json").intercept_scaled > 0.0


def untouched(folder: Path) -> bool:
    """Return whether nothing was charged, set aside, bound or written."""
    opened = open_ledger(LedgerFiles(folder / "ledger", None))
    try:
        spent, reserved = opened.budget().spent, sum(opened.state.reserved.values())
        return (spent, reserved, opened.state.bound) == (0, 0, None) and not (
            folder / "out"
        ).exists()
    finally:
        opened.close()


def test_a_ledger_that_cannot_pay_is_left_as_it_was(folder: Path, tmp_path: Path) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(rho_of(1.0, 1e-6))}).close()
    with pytest.raises(BudgetExceeded) as refused:
        run(*options(folder, tmp_path / "out", ledger=tmp_path / "ledger", epsilon=1.5))
    assert "\n" not in str(refused.value)
    assert "asked for: epsilon 1.5" in str(refused.value)
    assert untouched(tmp_path)


def test_rows_of_clients_are_not_charged_as_single_rows(folder: Path, tmp_path: Path) -> None:
    divided = tmp_path / "divided.toml"
    divided.write_text('client = "high"\n' + SCHEMA)
    files = LedgerFiles(tmp_path / "ledger")
    ledger = new_ledger("sqlite", tmp_path)
    head = ledger.head
    ledger.close()
    given = options(folder, tmp_path / "out", schema=divided, ledger=files.folder)
    with pytest.raises(BadInput, match="clients"):
        run(*given)
    # The same rows without their client column are what clients have paid for, too.
    ledger = open_ledger(files)
    assert ledger.head == head
    ledger.charge(ReleaseKey("j", 1, "d", "a client"), MECHANISM, request_sha256=digest(b"r"))
    ledger.close()
    with pytest.raises(BadInput, match="paid"):
        run(*options(folder, tmp_path / "out", ledger=files.folder))


def test_a_file_without_a_schema_and_a_table_without_a_label_are_refused(
    folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="--schema"):
        run("--data", folder / "rows.csv", "--out", tmp_path, "--epsilon", 1)
    (tmp_path / "s.toml").write_text(SCHEMA[: SCHEMA.index("[label]")])
    with pytest.raises(BadInput, match=r"s\.toml.*label") as refused:
        run(*options(folder, tmp_path / "out", schema=tmp_path / "s.toml"))
    assert "coarse.table" not in str(refused.value)


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_charged(
    folder: Path, tmp_path: Path
) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(5.0)}).close()
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="--out"):
        run(*options(folder, tmp_path / "file" / "out", ledger=tmp_path / "ledger", epsilon=1))
    opened = open_ledger(LedgerFiles(tmp_path / "ledger", None))
    assert opened.budget().spent == 0
    opened.close()


def test_a_folder_with_something_in_it_is_refused_unless_this_very_fit_is_replayed(
    folder: Path, tmp_path: Path
) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(5.0)}).close()
    ledger = {"ledger": tmp_path / "ledger", "epsilon": 0.5}
    first = options(folder, tmp_path / "free")
    assert run(*first) == 0
    before = (tmp_path / "free" / "model.json").read_bytes()
    for again in (first, options(folder, tmp_path / "free", **ledger)):  # another draw, another fit
        with pytest.raises(BadInput, match="not empty"):
            run(*again)
    assert (tmp_path / "free" / "model.json").read_bytes() == before
    opened = open_ledger(LedgerFiles(tmp_path / "ledger", None))
    assert opened.budget().spent == 0
    opened.close()
    charged = options(folder, tmp_path / "charged", **ledger)
    assert run(*charged) == 0
    assert run(*charged) == 0  # a replay
    with pytest.raises(BadInput, match="not empty"):
        run(*charged, "--name", "another")
    (tmp_path / "charged" / "model.json").write_text("{")
    with pytest.raises(BadInput, match="not empty"):
        run(*charged)


def test_an_epsilon_next_to_nothing_is_not_told_as_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(*options(folder, tmp_path / "out", epsilon=1e-9, solver="cd"), "--set", "passes=1") == 0
    )
    told = re.search(r"epsilon (\S+) at delta", capsys.readouterr().out)
    assert told is not None
    assert 0.0 < float(told[1]) <= 1e-9


def test_settings_are_read_by_their_type() -> None:
    solver = fit_input.make_solver("dual", ["sequential=true", "clip=0.25", "epochs=3"])
    assert solver == DualDescent(sequential=True, clip=0.25, epochs=3)
