"""Predictions over gRPC: scores, files, bytes, ledger lines, and what is left behind."""

from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import pytest
from support.aligning import in_a_loop
from support.dying import Died, Dying
from support.federation import N_ROWS, NAMES, coordinator, founded, party, sites
from support.predicting import Study, attached, report, scores_in, trained

from colonnade.client.predict_builder import model_from_releases
from colonnade.core.arrays import FloatArray
from colonnade.core.errors import Unreachable
from colonnade.ledger.export import export_lines, verify_export
from colonnade.methods.job import job_id
from colonnade.methods.problem import Solution
from colonnade.party.scoring import write_predictions
from colonnade.party.vault import party as vault_party
from colonnade.privacy.disclosure import PREDICTION
from colonnade.report import to_html
from colonnade.server.store.sql import Database
from colonnade.simulate.federation import free_port
from colonnade.wire.jobspec import job_to_bytes


def joined_table(study: Study) -> dict[str, FloatArray]:
    """Return the table that nobody has."""
    return {
        f"{site.party}.{column.name}": column.values
        for site in sites(names=NAMES)
        for column in site.features
        if site.party in study.names
    }


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
    joined = joined_table(study)
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
    page = to_html(found)
    assert "NO DIFFERENTIAL PRIVACY" in page
    assert "two parties besides the receiver are honest" in page
    assert "ε" not in page  # nothing is promised, so no amount is shown
    for ledger in study.ledgers.values():
        lines = list(export_lines(ledger))
        accounts = {each.name: each for each in verify_export(lines).accounts}
        assert accounts[PREDICTION].spent == accounts[PREDICTION].reserved == 0
        assert accounts[PREDICTION].releases >= 4
        assert sum('"disclosed_scores"' in line for line in lines) >= 4
        kept = {key.kind for key in ledger.state.stored if key.job == name and ledger.has(key)}
        assert "part" not in kept  # they have arrived
        assert "asked" in kept  # for good


@pytest.mark.slow
@in_a_loop
async def test_a_coordinator_that_dies_at_every_commit_delivers_the_same_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_party, "_FIRST_WAIT_S", 0.03)
    monkeypatch.setattr(vault_party, "_LONGEST_WAIT_S", 0.2)
    study = await trained(tmp_path)
    job = study.request([5, 6, 7, 90], chunk=2)
    url, port = f"sqlite:///{tmp_path}/hub.db", free_port()
    name = job_id(job_to_bytes(job))

    async def life(store: Database) -> bool:
        """Run one life of the coordinator; return whether the job ended in it."""
        try:
            async with coordinator(founded(), store=store, port=port) as hub:
                try:
                    await hub.attached(*study.names)
                    await hub.submit(job)
                    return await hub.ended(name) == "finished"
                except Unreachable:  # it died under this call
                    return False
        except Died:
            return False
        finally:
            store.close()

    async with AsyncExitStack() as stack:
        for each in study.names:
            given = {"ledger": study.ledgers[each], "policy": study.policy(each)}
            address = f"127.0.0.1:{port}"
            await stack.enter_async_context(
                party(founded(), each, address, study.home(each), **given)  # type: ignore[arg-type]
            )
        lives = 1
        # Each life is one commit longer, and ends before it or after it.
        while not await life(Dying(url, lives, after=lives % 2 == 0)):
            lives += 1
    assert lives > 4
    rows, scores, _ = scores_in(study.predictions("hospital").scores_path(name))
    model = model_from_releases(job_to_bytes(study.job), study.releases, Solution())
    assert rows == [5, 6, 7, 90]
    assert scores.tobytes() == model.decision_function(joined_table(study))[rows].tobytes()
    for ledger in study.ledgers.values():
        stored = [key for key in ledger.state.stored if key.job == name]
        # The record, the key, and two parts or two receptions: nothing was made twice.
        assert len(stored) == 4


@pytest.mark.slow
@in_a_loop
async def test_a_file_of_a_joined_table_gives_the_same_bits(tmp_path: Path) -> None:
    study = await trained(tmp_path)
    async with attached(study) as (hub, _):
        name = await hub.submit(study.request(range(N_ROWS)))
        assert await hub.ended(name) == "finished"
    model = model_from_releases(job_to_bytes(study.job), study.releases, Solution())
    (tmp_path / "model.json").write_text(model.to_json())
    columns = joined_table(study)
    with (tmp_path / "joined.csv").open("w") as file:
        file.write(",".join(columns) + "\n")
        for values in zip(*columns.values(), strict=True):
            file.write(",".join(map(repr, map(float, values))) + "\n")
    with (tmp_path / "out.csv").open("w") as out:
        write_predictions(model, tmp_path / "joined.csv", out)
    found = np.array((tmp_path / "out.csv").read_text().split()[1:], np.float64)
    _, _, predictions = scores_in(study.predictions("hospital").scores_path(name))
    assert found.tobytes() == predictions.tobytes()
