"""A command whose code an image leaves out says so in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(roots: list[str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command with some of the source roots only; an editable install adds none (-S)."""
    packages = [path for path in sys.path if path.endswith("site-packages")]
    code = "import sys; from colonnade.cli.main import main; sys.exit(main(sys.argv[1:]))"
    paths = [str(ROOT / name) for name in roots] + packages
    return subprocess.run(
        [sys.executable, "-S", "-c", code, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "COLONNADE_DEBUG": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("roots", "arguments", "missing", "where"),
    [
        (
            ["proto", "common", "party"],
            ["coordinator", "--template"],
            "colonnade.server",
            "coordinator",
        ),
        (["proto", "common", "server"], ["party", "run", "--template"], "colonnade.party", "party"),
        (
            ["proto", "common", "server"],
            ["preflight", "--party", "party.toml"],
            "colonnade.party",
            "party",
        ),
    ],
)
def test_an_absent_part_is_named_in_one_line(
    roots: list[str], arguments: list[str], missing: str, where: str
) -> None:
    ended = run(roots, *arguments)
    assert ended.returncode == 2
    assert ended.stderr == (
        f"colonnade: this installation leaves out {missing}; use the {where}'s image\n"
    )


def test_json_has_the_code() -> None:
    ended = run(["proto", "common", "server"], "party", "run", "--template", "--json")
    assert ended.stdout.startswith('{"error": "not_installed"')


def test_the_part_that_is_there_works() -> None:
    ended = run(["proto", "common", "party"], "party", "run", "--template")
    assert ended.returncode == 0, ended.stderr
    assert "coordinator = " in ended.stdout


def test_an_absent_package_is_named() -> None:
    code = (
        "import sys; sys.modules['grpc_health'] = None; from colonnade.cli.main import main;"
        "sys.exit(main(['health', '127.0.0.1:1']))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "grpc" in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
