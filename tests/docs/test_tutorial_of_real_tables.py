"""The tutorial of messy tables: its commands, typed as it says, end in a fitted model."""

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from colonnade.bench.tables.commands import EACH, OPERATOR, count_commands, tutorial_commands
from colonnade.cli.main import main
from colonnade.core.errors import EXIT_OK
from colonnade.simulate.federation import free_port

PARTIES = ("hospital", "laboratory", "insurer")
BOUNDS = {
    "born": ("1920-01-01", "2020-12-31"),
    "glucose": ("40", "400"),
    "crp": ("0", "100"),
    "creatinine": ("0.2", "5"),
    "claims": ("0", "20000"),
    "since": ("1990-01-01", "2025-12-31"),
}
DEADLINE_S = 90.0


def write_tables(folder: Path) -> dict[str, set[int]]:
    """Write three files about different, partly overlapping people; return who is in which."""
    draw = np.random.default_rng(15)
    people: dict[str, set[int]] = {}
    for party in PARTIES:
        listed = draw.permutation(900)[:600].tolist()
        people[party] = set(listed)
        rows = [ROWS[party](each, draw) for each in listed]
        text = "\n".join([HEADS[party], *rows]) + "\n"
        encoding = "utf-16" if party == "insurer" else "utf-8-sig"
        (folder / f"{party}.csv").write_text(text, encoding)
    return people


def hospital(person: int, draw: np.random.Generator) -> str:
    ward = draw.choice(("surgery", "medicine", "geriatrics"))
    born = f"{1 + person % 28:02}.{1 + person % 12:02}.{1930 + person % 70}"
    glucose = "" if person % 11 == 0 else f"{70 + person % 90},5"
    return f"P-{person:05};{born};{ward};{glucose};{'yes' if draw.random() < 0.3 else 'no'}"


def laboratory(person: int, draw: np.random.Generator) -> str:
    crp = "NA" if person % 13 == 0 else f"{draw.random() * 20:.1f}"
    return f"{person:05},{crp},{0.5 + draw.random():.2f},{draw.choice(('Y', 'N'))}"


def insurer(person: int, draw: np.random.Generator) -> str:
    since = f"{1995 + person % 25}-{1 + person % 12:02}-{1 + person % 28:02}"
    plan = draw.choice(("Básico", "plus, family", "full"))
    return f"{person:05}\t{plan}\t{draw.integers(9000)}\t{since}"


HEADS = {
    "hospital": "patient;born;ward;glucose;readmitted",
    "laboratory": "person,crp,creatinine,abnormal",
    "insurer": "member\tplan\tclaims\tsince",
}
ROWS = {"hospital": hospital, "laboratory": laboratory, "insurer": insurer}


def complete_schema(path: Path) -> None:
    """Decide on the bounds as a person does, who knows the quantities."""
    name, lines = "", []
    for line in path.read_text("utf-8").splitlines():
        if named := re.match(r'name = "(.+)"', line):
            name = named[1]
        for place, key in enumerate(("low", "high")):
            if line.startswith(f"{key} = ?"):
                line = f"{key} = {BOUNDS[name][place]}"
        lines.append(line)
    path.write_text("\n".join(lines) + "\n", "utf-8")


class Desk:
    """Types commands: short ones here, those that serve as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.running = folder, dict[str, subprocess.Popen[bytes]]()

    def type(self, who: str, command: str) -> None:
        words = shlex.split(command)
        assert words[0] == "colonnade"
        until = {"party run": "attached", "coordinator --config": "listening on"}
        if (awaited := until.get(" ".join(words[1:3]))) is None:
            if words[1:3] == ["party", "ingest"]:
                self.stop(who)
            assert main(words[1:]) == EXIT_OK, command
            return
        log = self.folder / f"{who}.log"
        with log.open("wb") as file:
            self.running[who] = subprocess.Popen(
                [sys.executable, "-m", "colonnade.cli.main", *words[1:]], stdout=file, stderr=file
            )
        end = time.monotonic() + DEADLINE_S
        while awaited not in log.read_text("utf-8", "replace"):
            assert self.running[who].poll() is None, log.read_text("utf-8", "replace")
            assert time.monotonic() < end, f"{who}: never {awaited}"
            time.sleep(0.05)

    def stop(self, who: str) -> None:
        process = self.running.pop(who)
        process.terminate()
        process.wait(DEADLINE_S)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path)
    yield desk
    for who in list(desk.running):
        desk.stop(who)


def test_the_commands_are_few() -> None:
    counted = count_commands()
    assert counted == {"party": 5, "operator": 4}
    assert counted["party"] <= 6


@pytest.mark.slow
def test_the_tutorial_ends_in_a_model(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = write_tables(tmp_path)
    address = f"127.0.0.1:{free_port()}"
    for who, shown in tutorial_commands():
        command = shown.replace("127.0.0.1:7443", address)
        if who == EACH:
            for party in PARTIES:
                desk.type(party, command.replace("hospital", party))
        else:
            desk.type(who if who != OPERATOR else "operator", command)
        if " party new " in command:
            complete_schema(tmp_path / who / "schema.toml")
    out = capsys.readouterr().out
    assert out.index("learns     coordinator alone") < out.index("rows that jobs use")
    model = json.loads((tmp_path / "run" / "model.json").read_text())
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["state"] == "finished"
    text = json.dumps(model, ensure_ascii=False)
    for name in ("glucose", "born", "crp", "abnormal", "since", "Básico", "plus, family"):
        assert name in text, name
    # The union has a row for everybody; dummies and phantoms add some, which jobs may use too.
    everybody = len(set.union(*people.values()))
    rows = max(int(n) for n in re.findall(r"(\d+) rows that jobs use", out))
    assert everybody <= rows < everybody + 1000
