"""The scripts behind the tutorials run, and give models that are of use."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(script: str, out: Path, *options: str) -> str:
    """Run a script as a reader would, and return what it printed."""
    command = [sys.executable, str(ROOT / "examples" / script), "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=out, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def scores(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"R2 (-?\d\.\d+)", text)]


def test_one_site(tmp_path: Path) -> None:
    said = run("one_site.py", tmp_path)
    assert "epsilon 1 at delta 1e-06, one row replaced" in said
    *private, plain = scores(said)
    # Noise is fresh in every run: the scores of 10 fits at epsilon 2 lay in .7570 to .7599, where
    # the plain one is .760, so the tolerance is more than ten times their spread. A useless model
    # has 0.
    assert plain - 0.05 < private[-1] < plain + 0.01
    assert "<svg" in (tmp_path / "one-site.svg").read_text()


def test_three_organizations(tmp_path: Path) -> None:
    said = run("three_organizations.py", tmp_path)
    assert "Whatever all others do together" in said
    assert len(re.findall(r"^(hospital|laboratory|insurer) +epsilon ", said, re.MULTILINE)) == 3
    (r2,) = scores(said)
    assert r2 > 0.3  # .703 to .710 in four runs; a useless model has 0
    assert "<svg" in (tmp_path / "three-organizations.svg").read_text()


def test_clients(tmp_path: Path) -> None:
    said = run("clients.py", tmp_path, "--epsilons", "32")
    assert "enforced for each client: epsilon 32" in said
    assert "central (model-based, not enforced)" in said
    (r2,) = scores(said)
    assert r2 > 0.3  # .783 to .793 in three runs; a useless model has 0
    assert "<svg" in (tmp_path / "clients.svg").read_text()


def test_the_pictures_of_the_tutorials_are_those_of_the_scripts() -> None:
    shown = {
        found
        for page in (ROOT / "docs" / "tutorials").glob("*.md")
        for found in re.findall(r"img/([\w-]+\.svg)", page.read_text())
    }
    made = {
        found
        for script in (ROOT / "examples").glob("*.py")
        for found in re.findall(r'"([\w-]+\.svg)"', script.read_text())
    }
    assert shown == made
    assert all((ROOT / "docs" / "img" / picture).is_file() for picture in shown)
