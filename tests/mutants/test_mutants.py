"""Every planted bug still applies, once, and its tests exist; ``make mutants`` runs them all."""

import ast
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from mutants import run
from mutants.run import ROOT, Mutant, Outcome, mutants, place_of, planted, sources

AREAS = {
    *("gate", "ledger", "state", "storage", "recovery", "mechanisms", "rows", "sessions"),
    *("policy", "engine", "alignment", "sealing", "prediction", "secure_sums"),
}


def test_there_are_bugs_in_every_area_each_by_another_name() -> None:
    bugs = mutants()
    assert len(bugs) >= 60
    assert {each.area for each in bugs} == AREAS
    assert len({each.name for each in bugs}) == len(bugs)


def test_every_bug_applies_exactly_once_and_leaves_a_module_that_parses() -> None:
    texts = sources(ROOT)
    for mutant in mutants():
        path = place_of(mutant, texts)
        changed = texts[path].replace(mutant.old, mutant.new)
        assert changed != texts[path], mutant.name
        ast.parse(changed)


def test_every_named_test_exists() -> None:
    known: dict[str, set[str]] = {}
    for mutant in mutants():
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            path, _, name = test.partition("::")
            if path not in known:
                tree = ast.parse((ROOT / path).read_text())
                known[path] = {
                    each.name
                    for each in ast.walk(tree)
                    if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                }
            assert name.partition("[")[0] in known[path], test


def test_a_text_that_occurs_twice_or_never_is_no_place(tmp_path: Path) -> None:
    texts = {tmp_path / "a.py": "one two two"}
    assert place_of(Mutant("gate", "a", "one", "", ()), texts) == tmp_path / "a.py"
    for wrong in ("two", "three"):
        with pytest.raises(ValueError, match="occurs"):
            place_of(Mutant("gate", "a", wrong, "", ()), texts)


def tried(folder: Path, *tests: str) -> Outcome:
    """Plant a bug in a module with two tests, of which one notices it."""
    source, check = folder / "a.py", folder / "test_a.py"
    source.write_text("def add(a, b):\n    return a + b\n")
    both = "from a import add\n\ndef test_sum():\n    assert add(1, 2) == 3\n"
    check.write_text(f"{both}\ndef test_nothing():\n    assert add is not None\n")
    texts = {source: source.read_text()}
    mutant = Mutant("gate", "a", "a + b", "a - b", tuple(f"test_a.py::{each}" for each in tests))
    try:
        return planted(mutant, folder, texts)
    finally:
        assert source.read_text() == texts[source]


def test_a_bug_that_no_test_notices_is_a_survivor_and_the_tree_is_as_before(
    tmp_path: Path,
) -> None:
    outcome = tried(tmp_path, "test_sum", "test_nothing")
    assert outcome.green == ("test_a.py::test_nothing",)
    assert outcome.hung == ()
    (said,) = outcome.red
    assert said.startswith("FAILED test_a.py::test_sum - assert -1 == 3")


def test_a_test_that_does_not_end_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_SECONDS", 0.001)
    outcome = tried(tmp_path, "test_sum")
    assert (outcome.green, outcome.red) == ((), ())
    assert outcome.line == "caught | HUNG test_a.py::test_sum"


def test_a_bug_whose_test_does_not_run_is_no_bug_that_was_caught(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be run"):
        tried(tmp_path, "test_renamed")


def test_a_run_that_a_signal_ends_prints_its_figures_so_far(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = iter([Outcome((), (), ("FAILED a",)), Outcome(("b",), (), ())])

    def stopped(*_: object) -> Outcome:
        if (outcome := next(outcomes, None)) is None:
            os.kill(os.getpid(), signal.SIGTERM)
            raise AssertionError
        return outcome

    monkeypatch.setattr(run, "planted", stopped)
    monkeypatch.setattr(run, "copied", lambda folder: folder)
    monkeypatch.setattr(sys, "argv", ["run", "--json"])
    assert run.main() == 128 + signal.SIGTERM
    told = json.loads(capsys.readouterr().out)
    assert (told["mutants"], told["error"]) == (2, "stopped")
    assert [each["tests"] for each in told["survivors"]] == ["b"]
