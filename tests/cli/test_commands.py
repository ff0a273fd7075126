"""The table of commands: every verb is there, help imports none, wrong words are answered well."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from colonnade.cli.main import main
from colonnade.cli.parser import Found, WrongUsage, find, load, verbs
from colonnade.cli.table import COMMANDS, Command
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import EXIT_OK, EXIT_USAGE

ROOT = Path(__file__).parents[2]
VERBS = dict(verbs())
Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_verb_has_a_parser_with_the_words_of_the_table(
    path: tuple[str, ...], capsys: Output
) -> None:
    module, parser = load(Found(path, VERBS[path], ()))
    assert callable(module.run)
    assert parser.prog == " ".join(("colonnade", *path))
    assert main([*path, "--help"]) == EXIT_OK
    said = capsys.readouterr()
    assert said.out.startswith(f"usage: {parser.prog} ")
    assert "--json" in said.out
    assert said.err == ""


def groups(path: tuple[str, ...] = (), command: Command = COMMANDS) -> list[tuple[str, ...]]:
    below = [each for name in command.verbs for each in groups((*path, name), command.verbs[name])]
    return ([path] if command.verbs and not command.module else []) + below


@pytest.mark.parametrize("path", groups(), ids=lambda path: " ".join(path) or "colonnade")
def test_the_help_of_a_group_lists_its_verbs(path: tuple[str, ...], capsys: Output) -> None:
    command = find(path).command
    assert main([*path, "--help"]) == EXIT_OK
    shown = " ".join(capsys.readouterr().out.split())
    for name, each in command.verbs.items():
        assert f"{name} {each.help}" in shown
    assert main([*path]) == EXIT_USAGE  # the same help, but no verb was named


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("partyy", "'party'"),
        ("Ledger", "'ledger'"),
        ("job sumbit", "'job submit'"),
        ("ingest", "'party ingest'"),
        ("simulate adm", "'simulate admm'"),
        ("qqqq", "--help"),
    ],
)
def test_a_word_that_is_no_command_gets_a_suggestion(
    words: str, meant: str, capsys: Output
) -> None:
    assert main(words.split()) == EXIT_USAGE
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert line.endswith((f"did you mean {meant}?", f"{meant}'"))
    assert said.out == ""


def test_a_usage_error_is_one_object_for_machines(capsys: Output) -> None:
    assert main(["health", "--json"]) == EXIT_USAGE
    assert json.loads(capsys.readouterr().out)["error"] == WrongUsage.code


def test_an_image_says_where_the_other_commands_are() -> None:
    packages = [path for path in sys.path if path.endswith("site-packages")]
    paths = [str(ROOT / name) for name in ("proto", "common", "party")] + packages
    code = "import sys; from colonnade.cli.main import main; sys.exit(main(sys.argv[1:]))"

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-S", "-c", code, *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    listed, _, absent = run("--help").stdout.partition("not in this installation:")
    assert re.search(r"^    fit +", listed, re.MULTILINE)
    for name, where in (("simulate", "simulation"), ("coordinator", "coordinator"), ("bench", "")):
        assert not re.search(rf"^    {name}\b", listed, re.MULTILINE)
        assert re.search(rf"\b{name}\b.*: use .*{where}", absent)
    ended = run("bench", "core", "--json")
    assert (ended.returncode, json.loads(ended.stdout)["error"]) == (EXIT_USAGE, "not_installed")


# -- errors of the library, as the command line tells them -----------------------------------------


def test_a_parameter_is_told_as_the_option_that_sets_it(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise BadArgument("sketch_dim", "must be positive")

    monkeypatch.setattr("colonnade.cli.pki.show.read_bounded", refuse)
    assert main(["pki", "show", "x"]) == 3
    assert capsys.readouterr().err == "colonnade: --sketch-dim must be positive\n"


def messages(path: Path) -> list[str]:
    """Return the texts in what a module raises or returns."""
    tree = ast.parse(path.read_text())
    said = [node for node in ast.walk(tree) if isinstance(node, ast.Raise | ast.Return)]
    parts = [part for node in said for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return [part.value for part in parts if isinstance(part.value, str)]


def test_errors_of_the_library_name_no_options() -> None:
    speaks = ("command.py", "runs.py", "_option.py", "_options.py")  # for the command line
    paths = [
        path
        for root in ("common", "server", "party", "sim")
        for path in (ROOT / root).rglob("*.py")
        if "cli" not in path.parts and not path.name.endswith(speaks)
    ]
    option = re.compile(r"""(^|[\s'"`(])--[a-z]""")
    found = [(path.name, text) for path in paths for text in messages(path) if option.search(text)]
    assert found == []
    assert any(
        option.search(text) for text in messages(ROOT / "common/colonnade/cli/fit/command.py")
    )
