"""The package's shape."""

import subprocess
import sys
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
)


def test_the_namespace_package_has_no_init_file() -> None:
    found = [str(path) for path in ROOT.glob("*/colonnade/__init__.py")]
    assert found == []
    # The glob can find: the packages one level down do have theirs.
    assert len(list(ROOT.glob("*/colonnade/*/__init__.py"))) >= 8


def test_the_command_line_starts_without_heavy_imports() -> None:
    code = (
        "import sys; from colonnade.cli.main import build_parser; build_parser().format_help();"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    paths = [str(ROOT / name) for name in ("proto", "common", "server", "party")]
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(paths)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[]"


def test_nothing_unpickles_or_evaluates() -> None:
    banned = ("pickle", "marshal", "shelve", "eval(", "exec(", "allow_pickle", "yaml.load")
    sources = [
        path for root in ("common", "server", "party") for path in (ROOT / root).rglob("*.py")
    ]
    assert len(sources) > 20
    hits = [(path.name, word) for path in sources for word in banned if word in path.read_text()]
    assert hits == []
