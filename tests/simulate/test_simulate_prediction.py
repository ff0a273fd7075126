"""``simulate --predict-to``, and what people then do with its folder: real processes and files."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from colonnade.cli.main import main
from colonnade.data.model import load_model
from colonnade.ledger.create import open_ledger
from colonnade.party.prediction.store import PredictionFolder
from colonnade.privacy.disclosure import PREDICTION
from colonnade.simulate.federation import Federation
from colonnade.simulate.processes import Processes

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fork_server")]

SIZES = ("--rows", "400", "--features", "6", "--epsilon", "5", "--seed", "3")


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, object]]:
    code = main([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out.strip().splitlines()[-1])


def test_people_are_scored_without_a_joined_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # With partly overlapping people and bought bounds: fills, presence and both grids take part.
    kept, out = tmp_path / "kept", tmp_path / "out"
    code, found = call(
        capsys,
        *("simulate", *SIZES, "--overlap", "0.7", "--bounds-share", "0.2"),
        *("--predict-to", "laboratory", "--keep", kept, "--out", out),
    )
    assert code == 0
    told = found["prediction"]
    assert isinstance(told, dict)
    assert {*told} >= {"rows", "equal_to_joined", "payload_bytes", "predicted_bytes", "seconds"}
    assert told["equal_to_joined"] is True
    assert told["payload_bytes"] == told["predicted_bytes"] == 3 * 160 + 2 * (8 * told["rows"] + 80)

    # The laboratory's own people by their ids: rows, a request for them, and its file.
    home = kept / "laboratory"
    (tmp_path / "some.csv").write_text(
        "simulated person\n7\nnobody\n12\n13\n14\n15\n16\n17\n18\n19\n20\n"
    )
    code, rows = call(
        capsys,
        *("party", "rows", "--config", home / "party.toml"),
        *("--people", tmp_path / "some.csv", "--out", tmp_path / "rows.csv"),
    )
    assert code == 0
    count, without = rows["rows"], rows["without_row"]
    assert isinstance(count, int)
    assert isinstance(without, int)
    assert count + without == 11
    made = Federation.at(kept, ("hospital", "laboratory", "insurer"))
    monkeypatch.setenv("COLONNADE_COORDINATOR", made.address)
    monkeypatch.setenv("COLONNADE_CREDENTIALS", str(made.operator_credentials))
    model = load_model(out / "model.json")
    asked = ("job", "predict", out / "model.json", "--rows", tmp_path / "rows.csv")
    with Processes(made, kept / "logs") as processes, processes.client() as client:
        processes.wait_for_parties(client)
        code, view = call(
            capsys, *asked, "--to", "laboratory", "--purpose", "a simulation", "--watch"
        )
        assert (code, view["state"]) == (0, "finished")
        code, refused = call(
            capsys, *asked, "--to", "insurer", "--purpose", "a simulation", "--watch"
        )
        assert code == 8
        assert "policy_refused" in str(refused)
        code, refused = call(
            capsys,
            "job",
            "predict",
            model.job_id,
            "--row",
            10**6,
            "--to",
            "insurer",
            "--purpose",
            "x",
        )
        assert (code, refused["error"]) == (3, "bad_input")
    name = str(view["job_id"])
    with PredictionFolder.beside(home / "data").scores_path(name).open(newline="") as file:
        head, *lines = csv.reader(file)
    assert head == ["row", "simulated person", "score", "prediction"]
    assert len(lines) == count
    assert {line[1] for line in lines} <= {"7", *map(str, range(12, 21))}
    np.testing.assert_array_less(0, [float(line[2]) ** 2 for line in lines])
    ledger = open_ledger(made.ledger("insurer"))
    try:
        charged = [key for key in ledger.state.charges if key.account == PREDICTION]
        assert {key.kind for key in charged} == {"asked", "key", "part"}
        assert ledger.state.budget(PREDICTION).spent == 0
    finally:
        ledger.close()
    assert main(["party", "policy", "--config", str(home / "party.toml")]) == 0
    shown = capsys.readouterr().out
    assert "No differential privacy" in shown
    assert "unless two parties besides the receiver are honest" in shown
