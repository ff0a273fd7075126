"""``colonnade bench tables``: its fields, and figures of runs that were interrupted."""

import json

import pytest

from colonnade.bench.commands import tables
from colonnade.bench.tables.align import measure_alignment
from colonnade.cli.main import main
from colonnade.core.errors import EXIT_OK


@pytest.mark.slow
def test_an_interrupted_alignment_costs_what_was_predicted() -> None:
    found = measure_alignment(2, 60, restarts=5)
    assert found.restarts == 5
    assert found.up_bytes_per_id == found.predicted_bytes_per_id > 0.0


@pytest.mark.slow
def test_the_fields_are_a_contract(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def small(n_parties: int, n_ids: int, *, restarts: int = 0) -> object:
        return measure_alignment(n_parties, min(n_ids, 40), restarts=restarts)

    monkeypatch.setattr(tables, "measure_alignment", small)
    assert main(("bench", "tables", "--quick", "--json", "--only", "align")) == EXIT_OK
    result = json.loads(capsys.readouterr().out)
    assert result["ids_per_s_vs_x25519_floor"] > 0.0
    assert result["cpu_vs_x25519_floor"] > 0.0
    assert [row["parties"] for row in result["align"]] == [2, 3, 3]
    assert {*result["align"][0]} == {
        "parties",
        "ids",
        "seconds",
        "cpu_us_per_id",
        "up_bytes_per_id",
        "predicted_bytes_per_id",
        "ids_per_s_vs_x25519_floor",
        "restarts",
    }
    assert main(("bench", "tables", "--json", "--only", "commands")) == EXIT_OK
    assert json.loads(capsys.readouterr().out) == {"commands": {"party": 5, "operator": 4}}
