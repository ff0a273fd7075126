"""Plant each bug in a copy of the tree and run its named tests: all must go red.

``make mutants``, or ``python -m mutants.run [--only NAME] [--json]`` from the folder of the tests.
A signal ends it with the figures so far.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from colonnade.bench.progress import keeping_figures
from colonnade.cli.stopping import stoppable

ROOT = Path(__file__).parents[2]
SOURCES = ("proto", "common", "server", "party", "sim", "bench")
ALSO = ("tests", "deploy", "docs", "examples", "pyproject.toml", "Makefile", "README.md")
TABLE = Path(__file__).parent / "planted.toml"
_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug: a text that occurs once in all sources, what stands there instead, who notices."""

    area: str
    name: str
    old: str
    new: str
    tests: tuple[str, ...]


def mutants() -> list[Mutant]:
    """Return all planted bugs."""
    rows = tomllib.loads(TABLE.read_text())["mutant"]
    return [Mutant(**(row | {"tests": tuple(row["tests"])})) for row in rows]


def sources(root: Path) -> dict[Path, str]:
    """Return the text of every shipped module."""
    paths = (path for name in SOURCES for path in (root / name).rglob("*.py"))
    return {path: path.read_text() for path in paths}


def place_of(mutant: Mutant, texts: dict[Path, str]) -> Path:
    """Return the one module in which a bug is planted; `ValueError` if there is none, or several.

    By content and not by path: code may move.
    """
    found = [path for path, text in texts.items() for _ in range(text.count(mutant.old))]
    if len(found) != 1:
        raise ValueError(f"{mutant.name}: its text occurs {len(found)} times")
    return found[0]


def copied(folder: Path) -> Path:
    """Copy the tree, with times and compiled kernels, so that only what changed is compiled."""
    for name in (*SOURCES, *ALSO):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, symlinks=True)
        else:
            shutil.copy2(source, folder / name)
    return folder


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests of one bug said."""

    green: tuple[str, ...]  # did not notice it
    hung: tuple[str, ...]  # did not end: noticed, unless the machine was too busy
    red: tuple[str, ...]  # what those that noticed said

    @property
    def line(self) -> str:
        """The outcome for a log."""
        said = f"SURVIVES {' '.join(self.green)}" if self.green else "caught"
        return " | ".join([said, *(f"HUNG {test}" for test in self.hung), *self.red])


def planted(mutant: Mutant, tree: Path, texts: dict[Path, str]) -> Outcome:
    """Plant a bug, run its tests, take it out again."""
    path = place_of(mutant, texts)
    times = path.stat()
    path.write_text(texts[path].replace(mutant.old, mutant.new))
    try:
        said = {test: _run(test, tree) for test in mutant.tests}
    finally:
        path.write_text(texts[path])
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return Outcome(
        tuple(test for test, why in said.items() if why == ""),
        tuple(test for test, why in said.items() if why is None),
        tuple(why for why in said.values() if why),
    )


def _run(test: str, tree: Path) -> str | None:
    """Return what a red test said, nothing of a green one, None of one that did not end."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", test]
    roots = os.pathsep.join(str(tree / each) for each in SOURCES)  # for processes that it starts
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=os.environ | {"PYTHONPATH": roots, "COLUMNS": "200"},  # else lines are cut off
            capture_output=True,
            timeout=_SECONDS,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode == 0:
        return ""
    if done.returncode != 1:  # no test ran, so none noticed anything
        raise ValueError(f"{test} cannot be run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    told = re.search(r"^(FAILED|ERROR) \S.*", done.stdout, re.MULTILINE)
    return told[0] if told else "red"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", help="the name of a bug; may be repeated")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    chosen = [each for each in mutants() if not asked.only or each.name in asked.only]
    survivors, hung, tried, began = [], [], 0, time.monotonic()
    temporary = tempfile.TemporaryDirectory(prefix="colonnade-mutants-")
    with keeping_figures() as ending, stoppable(), temporary as folder:
        tree = copied(Path(folder))
        texts = sources(tree)
        for mutant in chosen:
            outcome = planted(mutant, tree, texts)
            if outcome.green:
                tests = " ".join(outcome.green)
                survivors.append({"name": mutant.name, "area": mutant.area, "tests": tests})
            hung += [mutant.name] if outcome.hung else []
            tried += 1
            said = f"{tried}/{len(chosen)} {mutant.area}: {mutant.name}: {outcome.line}"
            print(said, file=sys.stderr, flush=True)
    seconds = round(time.monotonic() - began)
    told = {"mutants": tried, "survivors": survivors, "hung": hung, "seconds": seconds}
    text = f"{tried} bugs, {len(survivors)} survive, {len(hung)} hang"
    print(json.dumps(told | ending.fields) if asked.json else text)
    return ending.exit_code(1 if survivors else 0)


if __name__ == "__main__":
    sys.exit(main())
