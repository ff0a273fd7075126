"""``colonnade bench accuracy``: its fields, and what it is made of."""

import json

import numpy as np
import pytest

from colonnade.bench.accuracy import cases, references
from colonnade.cli.main import main
from colonnade.core.errors import EXIT_OK


@pytest.mark.slow
def test_the_fields_of_references_are_a_contract(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cases, "ROWS", 6_000)
    monkeypatch.setattr(cases, "SCORED", 2_000)
    one = [case for case in cases.cases(True, None) if case.name == "factors d=40"]
    monkeypatch.setattr(references, "cases", lambda *_: one)
    arguments = ("bench", "accuracy", "--quick", "--json", "--only", "references")
    assert main(arguments) == EXIT_OK
    (row,) = json.loads(capsys.readouterr().out)["references"]
    fields = {"case", "epsilon", "nonprivate", "central", "frank_wolfe", "fit", "moments"}
    limits = {"moments_limit", "between_error"}
    assert fields | limits | {"moments_label_at_one", "metric", "fresh"} == set(row)
    # Of 6,000 rows at rho 0.0244: sqrt(pi / 146).
    assert row["between_error"] == pytest.approx(0.147, abs=0.001)
    assert (row["case"], row["epsilon"], row["fresh"]) == ("factors d=40", 1.0, False)
    # What a site fits by default is what one place could do; nothing is far above no privacy.
    assert row["fit"] == row["central"] > 0.5
    assert row["central"] <= row["nonprivate"] + 0.01


def test_rows_that_are_scored_are_not_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "ROWS", 300)
    monkeypatch.setattr(cases, "SCORED", 100)
    divided = next(cases.cases(True, None)).data(3)
    fitted, scored = divided.fitted.label, divided.scored.label
    assert (fitted.size, scored.size) == (300, 100)
    assert not np.isin(scored, fitted).any()


def test_tables_that_rules_were_chosen_on_are_marked() -> None:
    assert [cases.is_fresh(name) for name in ("adult", "ar d=40", "electricity", "a9a")] == [
        False,
        False,
        True,
        True,
    ]
