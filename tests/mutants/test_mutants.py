"""Every planted bug still applies, once, and its tests exist; ``make mutants`` runs them all."""

import ast
from pathlib import Path

import pytest

from mutants.run import ROOT, Mutant, mutants, place_of, sources, survives

AREAS = {
    *("gate", "ledger", "state", "storage", "recovery", "mechanisms", "rows", "sessions"),
    *("policy", "engine", "alignment", "sealing", "prediction"),
}


def test_there_are_bugs_in_every_area_each_by_another_name() -> None:
    planted = mutants()
    assert len(planted) >= 60
    assert {each.area for each in planted} == AREAS
    assert len({each.name for each in planted}) == len(planted)


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


def test_a_bug_that_no_test_notices_is_a_survivor_and_the_tree_is_as_before(tmp_path: Path) -> None:
    source, check = tmp_path / "a.py", tmp_path / "test_a.py"
    source.write_text("def add(a, b):\n    return a + b\n")
    both = "from a import add\n\ndef test_sum():\n    assert add(1, 2) == 3\n"
    check.write_text(f"{both}\ndef test_nothing():\n    assert add is not None\n")
    texts = {source: source.read_text()}
    tests = ("test_a.py::test_sum", "test_a.py::test_nothing")
    mutant = Mutant("gate", "a", "a + b", "a - b", tests)
    assert survives(mutant, tmp_path, texts) == "test_a.py::test_nothing"
    assert source.read_text() == texts[source]
