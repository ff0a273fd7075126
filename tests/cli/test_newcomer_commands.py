"""What a newcomer gets wrong: one clear line, a documented exit code, nothing left behind."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.pki import NOW, Pki

from colonnade.cli.main import main
from colonnade.core.errors import JobEnded
from colonnade.pki.authority import create_authority

Output = pytest.CaptureFixture[str]

CANARY = 777123  # stands in files as data, and must never be told
SMALL = ("--rows", "1000", "--features", "6")
CLIENTS = ("simulate", "admm", "--clients", "6", "--features", "3", "--rounds", "1")
NO_NUMBERS = ("nan", "inf", "-inf", "-1", "1e308", "99999999999999999999")


@pytest.fixture(autouse=True)
def nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder that is empty, and start no process: all is refused before."""

    def run_job(*_: object, **__: object) -> None:
        raise JobEnded("the job was reached")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("colonnade.simulate.run.run_job", run_job)
    monkeypatch.setattr("colonnade.simulate.admm.job.run_job", run_job)


def refusal(capsys: Output, *arguments: object, code: int = 3) -> str:
    """Run a command that must be refused, and return the only line that it says."""
    before = sorted(Path().rglob("*"))
    assert main([*map(str, arguments)]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert str(CANARY) not in said.err
    (line,) = said.err.splitlines()
    assert line.startswith("colonnade: ")
    assert sorted(Path().rglob("*")) == before
    return line


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize("option", ["--epsilon", "--delta", "--correlation", "--label-noise"])
@pytest.mark.parametrize("command", [("plan", "--quick"), ("simulate",)])
def test_numbers_that_are_none_are_refused(
    capsys: Output, command: Sequence[str], option: str, value: str
) -> None:
    assert option in refusal(capsys, *command, *SMALL, f"{option}={value}")


@pytest.mark.parametrize("value", [-1, 10**20])
@pytest.mark.parametrize(
    "option",
    [
        *("--parties", "--rows", "--features", "--sketch-dim", "--directions", "--keep-features"),
        *("--rounds", "--shares", "--parties-per-round", "--features-per-round"),
    ],
)
@pytest.mark.parametrize("command", [("plan", "--quick"), ("simulate",)])
def test_counts_out_of_reach_are_refused(
    capsys: Output, command: Sequence[str], option: str, value: int
) -> None:
    assert option in refusal(capsys, *command, *SMALL, f"{option}={value}")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--epsilon", "0"], "--epsilon"),
        (["--delta", "0"], "--delta"),
        (["--rounds", "0"], "--rounds"),
        (["--directions", "0"], "--directions"),
        (["--keep-features", "0"], "--keep-features"),
        (["--sketch-dim", "0"], "--sketch-dim"),
        (["--parties-per-round", "0"], "--parties-per-round"),
        (["--parties", "7"], "--features"),
        (["--informative", "0"], "--informative"),
        (["--seed", "-1"], "--seed"),
        (["--label-owner", "bank"], "hospital, laboratory, insurer"),
    ],
)
@pytest.mark.parametrize("command", [("plan", "--quick"), ("simulate",)])
def test_plans_that_cannot_be_are_refused(
    capsys: Output, command: Sequence[str], options: Sequence[str], told: str
) -> None:
    assert told in refusal(capsys, *command, *SMALL, *options)


@pytest.mark.parametrize("value", ["nan", "inf", "-0.1", "1", "1e308"])
def test_a_share_for_bounds_is_a_part(capsys: Output, value: str) -> None:
    assert "--bounds-share" in refusal(capsys, "simulate", *SMALL, f"--bounds-share={value}")


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--clients", ["0", "-1", "99999999999999999999"]),
        ("--rows-per-client", ["0", "-1", "99999999999999999999"]),
        ("--features", ["0", "-1", "99999999999999999999"]),
        ("--sampled", ["0", "-1", "7"]),
        ("--rounds", ["0", "-1"]),
        ("--hosts", ["0", "-1", "7"]),
        ("--drop-out", ["nan", "-0.1", "1", "inf"]),
        ("--seed", ["-1"]),
        ("--strength", ["nan", "inf", "-1", "1e308"]),
        ("--epsilon", ["nan", "inf", "0", "-1", "1e308"]),
        ("--delta", ["nan", "0", "1", "inf"]),
    ],
)
def test_clients_that_cannot_be_are_refused(
    capsys: Output, option: str, values: Sequence[str]
) -> None:
    for value in values:
        assert option in refusal(capsys, *CLIENTS, f"{option}={value}")


def test_no_regulariser_has_no_strength(capsys: Output) -> None:
    line = refusal(capsys, *CLIENTS, "--regulariser", "none", "--strength", "2")
    assert "--regulariser" in line


@pytest.mark.slow
def test_people_of_one_class_are_refused(capsys: Output) -> None:
    made = ("--loss", "logistic", "--seed")
    alone = ("simulate", "admm", "--clients", "1", "--rows-per-client", "2", "--rounds", "1")
    codes = [main([*alone, *made, str(seed)]) for seed in range(12)]
    lines = [line for line in capsys.readouterr().err.splitlines() if "one class" in line]
    assert set(codes) == {3, 8}  # of two people, some seeds make both the same
    assert len(lines) == codes.count(3)


def write(name: str, row: Any, n_rows: int = 300) -> None:
    """Write a table of columns a, b, c and y, whose row is a function of its number."""
    lines = ["a,b,c,y", *(",".join(map(str, row(i))) for i in range(n_rows))]
    Path(name).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (lambda i: (i, i % 7, i % 5, f"x{CANARY}"), "no column 'y' to learn"),
        (lambda i: (i, i % 7, i % 5, "" if i == 3 else CANARY + i), "has missing values"),
        (lambda i: (i, i % 7, i % 5, CANARY), "one value"),
        (lambda i: (i, "inf", i % 5, CANARY + i), "column 'b' has infinite"),
        (lambda i: (i, i % 7, "1e308", CANARY + i), "column 'c' has infinite or huge"),
        (lambda i: (i, i % 7, i % 5, "inf" if i else CANARY), "column 'y' has infinite"),
        (lambda i: ("", "", "nan", CANARY + i), "no usable columns besides 'y'"),
    ],
)
def test_a_table_that_is_no_use_is_refused(capsys: Output, row: Any, told: str) -> None:
    write("people.csv", row)
    options = ("--data", "people.csv", "--target", "y", "--parties", "2")
    assert told in refusal(capsys, "simulate", *options)


@pytest.mark.parametrize("text", ["", "a,b,c,y\n"])
def test_a_table_without_rows_is_told_so(capsys: Output, text: str) -> None:
    Path("people.csv").write_text(text)
    assert "no rows" in refusal(capsys, "simulate", "--data", "people.csv", "--target", "y")


def test_columns_without_numbers_are_named_and_left_out(capsys: Output) -> None:
    write("people.csv", lambda i: (i, i % 7, f"x{CANARY}", i % 11), 30)
    options = ("--data", "people.csv", "--target", "y", "--parties", "2", "--bounds-share", "0")
    assert main(["simulate", *options]) == 8
    said = capsys.readouterr().err
    assert "left out: c (--schema declares dates)\n" in said
    assert "2 parties, 24 people, 2 features; plan: " in said
    assert str(CANARY) not in said


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "people"),
        (bytes(range(256)) * 20, "people"),
        (b"a,b,c,y\n", "people"),
        (b"a,b,c,y\n1,2,3,4\n", "1 rows"),
        (b'{"a": [1, 2, {"b"', "people"),
        (b"PAR1abcdef", "people"),
        (b"\x1f\x8b\x08\x00garbage", "people"),
        (None, "people"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "csv.gz"])
def test_a_file_that_is_no_table_is_refused(
    capsys: Output, content: bytes | None, told: str, suffix: str
) -> None:
    path = Path(f"people.{suffix}")
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    line = refusal(capsys, "simulate", "--data", path, "--target", "y", "--parties", "2")
    assert "people" in line
    assert told in line or suffix != "csv"


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ('[[feature]]\nname = "z"\nlow = 0\nhigh = 1\n', "no column 'z'"),
        ("[[feature\n", "not valid TOML"),
        (None, "schema.toml"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(
    capsys: Output, schema: str | None, told: str
) -> None:
    write("people.csv", lambda i: (i, i % 7, i % 5, CANARY + i))
    if schema is not None:
        Path("schema.toml").write_text(schema)
    options = ("--data", "people.csv", "--target", "y", "--schema", "schema.toml")
    assert told in refusal(capsys, "simulate", *options)


@pytest.mark.parametrize("option", ["--out", "--keep"])
@pytest.mark.parametrize("place", ["file", "file/below", "loop", "loop/below"])
@pytest.mark.parametrize("command", [("simulate", *SMALL), CLIENTS])
def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_done(
    capsys: Output, command: Sequence[str], place: str, option: str
) -> None:
    Path("file").write_text("")
    Path("loop").symlink_to("loop")
    assert place in refusal(capsys, *command, option, place)


def test_a_folder_that_something_is_in_is_refused(capsys: Output) -> None:
    Path("run").mkdir()
    Path("run", "notes").write_text("")
    assert "not empty" in refusal(capsys, "simulate", *SMALL, "--out", "run")


@pytest.mark.parametrize("method", ["moments", "frank-wolfe"])
def test_a_simulation_says_first_what_its_plan_is(capsys: Output, method: str) -> None:
    options = (*SMALL, "--method", method)
    assert main(["plan", "--quick", *options, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert main(["simulate", *options]) == 8
    plural = "" if plan["rounds"] == 1 else "s"
    told = f"3 parties, 1000 people, 6 features; plan: {method}, {plan['rounds']} round{plural}\n"
    assert capsys.readouterr().err.startswith(told)


@pytest.mark.slow
def test_logs_that_go_with_a_simulation_are_not_promised(capsys: Output) -> None:
    assert main(["simulate", *SMALL]) == 8
    assert "--keep FOLDER" in capsys.readouterr().err
    assert main(["simulate", *SMALL, "--keep", "kept"]) == 8
    assert "--keep" not in capsys.readouterr().err
    assert Path("kept", "hospital", "ledger").is_dir()


@pytest.mark.parametrize("address", ["here", "127.0.0.1:99999999", "127.0.0.1:-1", ":::", ":1"])
def test_an_address_that_is_none_is_not_dialled(capsys: Output, address: str) -> None:
    command = ("job", "list", "--coordinator", address, "--credentials", "nowhere")
    assert "host:port" in refusal(capsys, *command)


def test_a_coordinators_certificate_is_no_operators(capsys: Output, tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    create_authority(pki.authority, "study", now=NOW)
    pki.coordinator()
    command = ("job", "list", "--coordinator", "127.0.0.1:1", "--credentials", "coordinator-hub")
    line = refusal(capsys, *command, code=4)
    assert "spiffe://study/coordinator/hub, not of an operator" in line


def test_an_argument_that_is_no_text_is_bad_input(capsys: Output, tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    create_authority(pki.authority, "study", now=NOW)
    pki.member("operator", "analyst")
    options = ("--coordinator", "127.0.0.1:1", "--credentials", "operator-analyst")
    assert "UTF-8" in refusal(capsys, "job", "show", "\udcff", *options)


@pytest.mark.parametrize("name", ["", "A b", "a/b", "a\nb", "é", "x" * 64, "-rf", ".."])
def test_a_ledger_is_founded_under_a_name_that_a_certificate_can_have(
    capsys: Output, name: str
) -> None:
    line = refusal(
        capsys, "party", "init", "--ledger", "ledger", "--rho", "1", f"--name={name}", code=4
    )
    assert "name" in line


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--rho=nan"], "finite"),
        (["--rho=inf"], "finite"),
        (["--rho=0"], "positive"),
        (["--rho=1e308"], "8191"),
        (["--epsilon=nan"], "finite"),
        (["--epsilon=0"], "epsilon must be positive"),
        (["--epsilon=1e308"], "8191"),
        (["--epsilon=1", "--delta=nan"], "delta"),
        (["--rho=1", "--delta=1"], "delta"),
    ],
)
def test_an_amount_that_is_none_is_refused(
    capsys: Output, options: Sequence[str], told: str
) -> None:
    init = ("party", "init", "--ledger", "ledger", "--name", "lab")
    bounds = ("party", "bounds", "--data", "data", "--ledger", "ledger")
    cap = ("ledger", "cap", "ledger", "--reason", "a study")
    for command in (init, bounds, cap):
        assert told in refusal(capsys, *command, *options)


def test_a_cap_is_not_raised_without_a_reason(capsys: Output) -> None:
    assert main(["party", "init", "--ledger", "ledger", "--name", "lab", "--rho", "1"]) == 0
    capsys.readouterr()
    assert "--reason" in refusal(capsys, "ledger", "cap", "ledger", "--rho", "2", "--reason", " ")
