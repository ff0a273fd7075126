"""Plant each bug in a copy of the tree and run its named tests: all must go red.

``make mutants``, or ``python -m mutants.run [--only NAME] [--json]`` from the folder of the tests.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

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


def survives(mutant: Mutant, tree: Path, texts: dict[Path, str]) -> str:
    """Plant a bug, run its tests, take it out again; return which tests stayed green."""
    path = place_of(mutant, texts)
    times = path.stat()
    path.write_text(texts[path].replace(mutant.old, mutant.new))
    try:
        green = [test for test in mutant.tests if _passes(test, tree)]
    finally:
        path.write_text(texts[path])
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return " ".join(green)


def _passes(test: str, tree: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", test]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return False  # it hangs: that is noticed too
    return done.returncode == 0


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", help="the name of a bug; may be repeated")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    chosen = [each for each in mutants() if not asked.only or each.name in asked.only]
    survivors, began = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="colonnade-mutants-") as folder:
        tree = copied(Path(folder))
        texts = sources(tree)
        for place, mutant in enumerate(chosen, 1):
            green = survives(mutant, tree, texts)
            if green:
                survivors.append({"name": mutant.name, "area": mutant.area, "tests": green})
            said = f"SURVIVES {green}" if green else "caught"
            print(f"{place}/{len(chosen)} {mutant.area}: {mutant.name}: {said}", file=sys.stderr)
    seconds = round(time.monotonic() - began)
    told = {"mutants": len(chosen), "survivors": survivors, "seconds": seconds}
    print(json.dumps(told) if asked.json else f"{len(chosen)} bugs, {len(survivors)} survive")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
