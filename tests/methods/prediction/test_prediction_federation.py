"""Predictions over gRPC: scores, files, bytes, ledger lines, and what is left behind."""

from pathlib import Path

import numpy as np
import pytest
from support.aligning import in_a_loop
from support.federation import N_ROWS, NAMES, sites
from support.predicting import attached, report, scores_in, trained

from colonnade.client.predict_builder import model_from_releases
from colonnade.ledger.export import export_lines, verify_export
from colonnade.methods.problem import Solution
from colonnade.privacy.disclosure import PREDICTION
from colonnade.wire.jobspec import job_to_bytes


@pytest.mark.slow
@in_a_loop
async def test_scores_equal_those_of_a_joined_table_bit_for_bit(tmp_path: Path) -> None:
    study = await trained(tmp_path)
    asked = [*range(200), 203, 299]
    job = study.request(asked[::-1], chunk=90)
    async with attached(study) as (hub, _):
        name = await hub.submit(job)
        assert await hub.ended(name) == "finished"
        found = await report(hub, name)
        await hub.until(lambda: not any(each.state.left for each in study.ledgers.values()))
    folder = study.predictions("hospital")
    rows, scores, predictions = scores_in(folder.scores_path(name))
    model = model_from_releases(job_to_bytes(study.job), study.releases, Solution())
    joined = {
        f"{site.party}.{column.name}": column.values
        for site in sites(names=NAMES[:4])
        for column in site.features
        if site.party in study.names
    }
    assert rows == asked
    assert scores.tobytes() == model.decision_function(joined)[asked].tobytes()
    assert predictions.tobytes() == model.predict(joined)[asked].tobytes()
    used = {each.party for each in model.features if each.coef_scaled}
    assert used == {*study.names}
    assert np.ptp(scores) > 0.0
    assert len(joined["hospital.x0"]) == N_ROWS
    # Nothing is left of the run but the receiver's file; the coordinator keeps no sealed part.
    left = {
        each: sorted(p.name for p in study.predictions(each).path.iterdir()) for each in NAMES[:3]
    }
    assert left == {"hospital": [f"{name}.csv"], "laboratory": [], "insurer": []}
    uplink = found["uplink"]
    assert uplink["payload_bytes"] == uplink["predicted_bytes"] == 3 * 160 + 2 * (202 * 8 + 3 * 80)
    for row in uplink["rows"]:
        assert row["payload_bytes"] == row["predicted_bytes"]
    assert found["prediction"]["delivered"]
    assert "No differential privacy" in found["privacy"]["statement"]
    for ledger in study.ledgers.values():
        lines = list(export_lines(ledger))
        accounts = {each.name: each for each in verify_export(lines).accounts}
        assert accounts[PREDICTION].spent == accounts[PREDICTION].reserved == 0
        assert accounts[PREDICTION].releases >= 4
        assert sum('"disclosed_scores"' in line for line in lines) >= 4
