"""The ingest verb on the command line, on real data, and within its memory."""

import csv
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.commands import handle

from colonnade.cli.parser import WrongUsage
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID, Bounds, dequantise
from colonnade.data.table import open_pair
from colonnade.party.config import TEMPLATE

REPOSITORY = Path(__file__).parents[2]
ROOTS = [str(REPOSITORY / root) for root in ("proto", "common", "server", "party")]
ALIGN = """
[[align]]
coordinator = "spiffe://study/coordinator/hub"
peers = ["*"]
max_people = 9
"""
SCHEMA = """
id = "id"
[[feature]]
name = "a"
low = 0
high = 10
[label]
name = "y"
low = 0
high = 1
"""


def run(*arguments: object) -> int:
    return handle("party", "ingest", *arguments)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(SCHEMA)
    (tmp_path / "x.csv").write_text("id,a,y\np1,11,1\np2,NA,0\n")
    (tmp_path / "ids.txt").write_text("p2\np3\np1\n")
    return tmp_path


def test_the_table_and_the_counts_are_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--schema", folder / "s.toml", "--out", folder / "data", folder / "x.csv"]
    assert run(*files, "--roster", folder / "ids.txt") == 0
    shown = capsys.readouterr()
    assert shown.err == ""  # no progress bar away from a terminal
    assert shown.out.splitlines() == [
        f"{folder}/data/coarse.table: 3 rows, 1 of them absent and filled, 2 columns",
        "people: 2 matched, 1 absent, 0 rows left out (local only, never sent)",
        "Values changed (local only, never sent):",
        "  column  role        clipped     missing",
        "  a       feature           1           1",
        "  y       label             0           0",
        (
            "The roster's order is compared with nobody's: parties that hold one key and give it "
            "with --roster-key are refused if their rosters differ."
        ),
    ]
    assert open_pair(folder / "data")[0].columns.tolist() == [[0, 0, GRID]]


def test_ids_of_a_roster_follow_the_rule_that_is_given_or_the_policys(folder: Path) -> None:
    (folder / "x.csv").write_text("id,a,y\nP-001,11,1\nÉ 002,NA,0\n,3,0\n")
    (folder / "ids.txt").write_text("2\n3\n1\n")
    (folder / "party.toml").write_text(TEMPLATE)
    policy, source = folder / "policy.toml", folder / "x.csv"
    options = ["--schema", folder / "s.toml", "--roster", folder / "ids.txt", "--out"]
    with pytest.raises(BadInput, match="person"):
        run(*options, folder / "none", source)
    assert run(*options, folder / "given", "--id-rule", "number", source) == 0
    configured = [*options, folder / "own", "--config", folder / "party.toml", source]
    policy.write_text(ALIGN)  # which names no rule: ids stay as they are
    with pytest.raises(BadInput, match="person"):
        run(*configured)
    policy.write_text(f'{ALIGN}ids = ["number"]\n')
    assert run(*configured) == 0
    for each in ("given", "own"):
        assert open_pair(folder / each)[0].columns.tolist() == [[0, 0, GRID]]
    policy.write_text(f'{ALIGN}ids = ["number", "plain"]\n')
    with pytest.raises(WrongUsage, match="--id-rule"):
        run(*configured)
    with pytest.raises(BadArgument, match="'digit'"):
        run(*configured, "--id-rule", "digit")


def test_json_is_one_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = f"select * from '{folder}/x.csv'"
    assert (
        run("--schema", folder / "s.toml", "--out", folder / "data", "--query", query, "--json")
        == 0
    )
    shown = json.loads(capsys.readouterr().out)
    coarse, _ = open_pair(folder / "data")
    assert shown == {
        "coarse": f"{folder}/data/coarse.table",
        "fine": f"{folder}/data/fine.table",
        "n_rows": 2,
        "n_absent": 0,
        "content_digest": coarse.content_digest,
        "columns": [
            {"name": "a", "role": "feature", "n_clipped": 1, "n_missing": 1, "n_other": 0},
            {"name": "y", "role": "label", "n_clipped": 0, "n_missing": 0, "n_other": 0},
        ],
        "n_clients": 0,
        "n_respelled": 0,
        "n_left_out": 0,
        "alignment": "",
        "note": "local only, never sent",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["x.csv", "--query", "select 1"],
        ["x.csv", "--database", "x.duckdb"],
    ],
)
def test_a_wrong_choice_of_source_is_a_usage_error(folder: Path, arguments: list[str]) -> None:
    with pytest.raises(WrongUsage):
        run("--schema", folder / "s.toml", "--out", folder / "data", *arguments)


def test_faults_reach_the_caller_as_bad_input(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"absent\.csv"):
        run("--schema", folder / "s.toml", "--out", folder / "data", folder / "absent.csv")


def data_folder() -> Path | None:
    named = os.environ.get("COLONNADE_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    return folder if folder.is_dir() else None


@pytest.mark.parametrize("name", ["diabetes", "california", "colon_disc"])
def test_real_data_comes_back_within_half_a_step(tmp_path: Path, name: str) -> None:
    folder = data_folder()
    if folder is None or not (folder / f"{name}.csv.gz").is_file():
        pytest.skip("set COLONNADE_DATA to the folder of the shared data sets")
    path = folder / f"{name}.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        header, *rows = csv.reader(file)
    data = np.array(rows, dtype=np.float64).T
    names, low, high = header[:-1], -1000.0, 50000.0
    blocks = [f"[[feature]]\nname = {json.dumps(n)}\nlow = {low}\nhigh = {high}\n" for n in names]
    label = f'[label]\nname = "{header[-1]}"\nlow = {low}\nhigh = {high}\n'
    (tmp_path / "s.toml").write_text("".join([*blocks, label]))
    assert run("--schema", tmp_path / "s.toml", "--out", tmp_path / "data", path) == 0
    for table in open_pair(tmp_path / "data"):
        table.verify()
        assert (table.names, table.n_rows) == (tuple(names), len(rows))
        assert table.label is not None
        grid, bounds = table.header.grid, Bounds(low, high)
        found = dequantise(np.vstack([table.columns, table.label]), bounds, grid=grid)
        # 1 % above half a step, for the rounding of floats next to a fine step of 2**-30.
        assert np.abs(found - np.clip(data, low, high)).max() <= 0.505 * bounds.half_width / grid


MEMORY_PROGRAM = """
import resource, sys
from pathlib import Path
import colonnade.party.data.reading.sources as sources
sources.MEMORY_MB = 200
from colonnade.party.data.ingest import ingest
from colonnade.data.schema import load_schema
folder = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ingest(load_schema(folder / "s.toml"), sources.FileSource(folder / "x.csv"), out=folder / "data")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_rows", "n_columns", "limit_mb"), [(400_000, 50, 200), (13_000, 1500, 375)]
)
def test_memory_follows_the_limit_and_not_the_source(
    tmp_path: Path, n_rows: int, n_columns: int, limit_mb: int
) -> None:
    line = ",".join(["0.123456789012345678"] * (n_columns - 1))
    with (tmp_path / "x.csv").open("w") as file:
        file.write(",".join(f"f{i}" for i in range(n_columns)) + "\n")
        file.writelines(f"{i},{line}\n" for i in range(n_rows))
    blocks = [f'[[feature]]\nname = "f{i}"\nlow = 0\nhigh = 1e6\n' for i in range(n_columns)]
    (tmp_path / "s.toml").write_text("".join(blocks))
    environment = {"PYTHONPATH": os.pathsep.join(ROOTS)}
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_PROGRAM, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    # Files have 420 MB, values 160 MB as floats; 150 MB are for code, allocators and a few columns.
    assert int(done.stdout) < limit_mb + 150
    coarse, _ = open_pair(tmp_path / "data")
    assert (np.diff(coarse.columns[0].astype(np.int64)) >= 0).all()


def test_bounds_that_most_values_lie_outside_of_are_pointed_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = '[[feature]]\nname = "born"\ntype = "date"\nformat = "%d.%m.%y"\n'
    (folder / "d.toml").write_text(f"{schema}low = 1925-01-01\nhigh = 2005-01-01\n")
    files = ["--schema", folder / "d.toml", "--out", folder / "data", folder / "born.csv"]
    for years, pointed_out in ((("51", "47", "80"), True), (("51", "90", "80"), False)):
        (folder / "born.csv").write_text("\n".join(["born", *(f"03.04.{y}" for y in years)]) + "\n")
        assert run(*files) == 0
        assert (
            "half of the values of 'born' lie outside" in capsys.readouterr().out
        ) is pointed_out
