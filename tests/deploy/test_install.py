"""``pip install .`` alone runs the main job, and what a process of it ends with is shown."""

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from colonnade.cli.main import _absent
from colonnade.core.errors import JobEnded, Unreachable
from colonnade.simulate.federation import Federation
from colonnade.simulate.processes import Processes

ROOT = Path(__file__).parents[2]
ROOTS = ("proto", "common", "server", "party")
SMALL = ("--rows", "1000", "--features", "6", "--informative", "2", "--out", "run")
# Read by every Python that starts with this folder on its path, so by the children too.
BLOCKER = """
import sys

class Blocker:
    blocked = frozenset({blocked!r})

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.blocked:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_with(requirements: list[str]) -> set[str]:
    """Return the distributions that pip would install for ``requirements``."""
    found, todo = set[str](), [Requirement(each) for each in requirements]
    while todo:
        wanted = todo.pop()
        name = normal(wanted.name)
        extras = ["", *wanted.extras]
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        if name in found and not wanted.extras:
            continue
        found.add(name)
        for each in map(Requirement, metadata.requires(name) or []):
            if each.marker is None or any(each.marker.evaluate({"extra": e}) for e in extras):
                each.marker = None
                todo.append(each)
    return found


def modules_left_out() -> set[str]:
    """Return the packages here that a plain installation does not bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    here = installed_with(project["dependencies"]) | {"colonnade"}
    owners = metadata.packages_distributions()
    return {name for name, owned in owners.items() if not here & {normal(each) for each in owned}}


def simulate(folder: Path, blocked: set[str]) -> "subprocess.CompletedProcess[str]":
    (folder / "path").mkdir()
    (folder / "path" / "sitecustomize.py").write_text(BLOCKER.format(blocked=sorted(blocked)))
    paths = os.pathsep.join([str(folder / "path"), *(str(ROOT / each) for each in ROOTS)])
    return subprocess.run(
        [sys.executable, "-m", "colonnade.cli.main", "simulate", *SMALL],
        env=os.environ | {"PYTHONPATH": paths},
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_a_plain_installation_runs_the_main_job(tmp_path: Path) -> None:
    left_out = modules_left_out()
    assert {"sklearn", "opendp", "psycopg", "pytest", "matplotlib"} <= left_out
    assert not {"sqlalchemy", "jinja2", "numba", "grpc"} & left_out
    ended = simulate(tmp_path, left_out)
    assert ended.returncode == 0, ended.stderr
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.count("<svg") >= 5  # with its plots


@pytest.mark.slow
def test_the_error_of_a_process_is_shown_and_not_pointed_to(tmp_path: Path) -> None:
    ended = simulate(tmp_path, {"sqlalchemy"})  # which only the coordinator's process needs
    told = ended.stderr.strip().splitlines()[-1]
    assert ended.returncode == 8
    assert "coordinator ended with exit code 2: sqlalchemy is not installed: pip install" in told
    assert ".log" not in told
    assert "/tmp" not in told


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("psycopg", "[postgres]"),
        ("sklearn.linear_model", "[sklearn]"),
        ("dp_accounting", "[sklearn]"),
        ("opendp", "[bench]"),
        ("grpc", ""),
    ],
)
def test_a_package_that_an_extra_has_is_named_with_it(module: str, extra: str) -> None:
    told = _absent(ModuleNotFoundError("absent", name=module))
    assert (
        told
        == f"{module.split('.', maxsplit=1)[0]} is not installed: pip install 'colonnade{extra}'"
    )


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("attached\ncolonnade: the disk is full; free some\nbye\n", "the disk is full; free some"),
        ("attached\nKilled\n\n", "Killed"),
        ("\x1b[31mred\n", "?[31mred"),
        ("", "it wrote nothing"),
    ],
)
def test_a_process_that_ended_is_blamed_with_its_own_words(
    tmp_path: Path, log: str, words: str
) -> None:
    (tmp_path / "hub.log").write_text(log)
    ended = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    ended.wait()
    processes = Processes(Federation(tmp_path, "127.0.0.1:1", ()), tmp_path, {"hub": ended})
    with pytest.raises(JobEnded) as blamed, processes.blamed():
        raise Unreachable("the coordinator does not answer")
    assert str(blamed.value) == f"hub ended with exit code 3: {words}"


def test_a_coordinator_that_runs_is_not_blamed(tmp_path: Path) -> None:
    processes = Processes(Federation(tmp_path, "127.0.0.1:1", ()), tmp_path)
    with pytest.raises(Unreachable), processes.blamed():
        raise Unreachable("the coordinator does not answer")
