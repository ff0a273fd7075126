"""The package's shape."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = (
    "numpy",
    "numba",
    "duckdb",
    "apsw",
    "cryptography",
    "google.protobuf",
    "tqdm",
    "grpc",
    "msgspec",
    "matplotlib",
)
LIGHT = (
    *(f"colonnade.cli.{name}" for name in ("main", "parser", "stopping", "streams", "table")),
    *(f"colonnade.core.{name}" for name in ("arguments", "errors", "text")),
)


def test_the_namespace_package_has_no_init_file() -> None:
    found = [str(path) for path in ROOT.glob("*/colonnade/__init__.py")]
    assert found == []
    # The glob can find: the packages one level down do have theirs.
    assert len(list(ROOT.glob("*/colonnade/*/__init__.py"))) >= 8


def test_the_command_line_starts_without_heavy_imports() -> None:
    # In place of processor time, which a busy machine stretches: help takes a third of its limit
    # of 150 ms with these many modules, most of them Python's own.
    for words in ([], ["party"], ["job"], ["ledger"], ["pki"], ["bench"]):
        code = (
            "import json, sys; before = set(sys.modules); from colonnade.cli.main import main;"
            f"main([*{words!r}, '--help']); print(json.dumps(sorted(set(sys.modules) - before)))"
        )
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert ran.stdout.startswith(f"usage: {' '.join(['colonnade', *words])} "), ran.stderr
        loaded = json.loads(ran.stdout.splitlines()[-1])
        assert [name for name in HEAVY if name in loaded] == []
        assert len(loaded) < 90
        ours = {name for name in loaded if name.startswith("colonnade.")}
        assert ours <= {"colonnade.cli", "colonnade.core", *LIGHT}, words


def test_a_running_party_starts_without_the_engine_that_reads_files() -> None:
    # It is needed once an alignment lists people; at exit it may write lines of its own.
    code = "import sys, colonnade.party.vault.process; print('duckdb' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "False\n", ran.stderr


def test_nothing_unpickles_or_evaluates() -> None:
    banned = ("pickle", "marshal", "shelve", "eval(", "exec(", "allow_pickle", "yaml.load")
    sources = [
        path for root in ("common", "server", "party") for path in (ROOT / root).rglob("*.py")
    ]
    assert len(sources) > 20
    hits = [(path.name, word) for path in sources for word in banned if word in path.read_text()]
    assert hits == []


MAX_LINES, MAX_MODULES = 300, 15


def shipped() -> list[Path]:
    roots = ("common", "server", "party", "sim", "bench")
    return [path for root in roots for path in (ROOT / root).rglob("*.py")]


def test_no_module_is_longer_than_three_hundred_lines() -> None:
    longer = [
        str(path.relative_to(ROOT))
        for path in shipped()
        if len(path.read_text().splitlines()) > MAX_LINES
    ]
    assert longer == []


def test_no_folder_has_more_than_fifteen_modules() -> None:
    modules = Counter(path.parent for path in shipped() if path.name != "__init__.py")
    assert len(modules) > 30
    assert [str(folder) for folder, count in modules.items() if count > MAX_MODULES] == []
