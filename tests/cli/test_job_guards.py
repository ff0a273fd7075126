"""Operators hear of absent parties, repeated questions and models that use nobody's columns."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.federation import NAMES, credentials_of, everyone, founded, sites

from colonnade.cli.main import main
from colonnade.client import Client, JobOptions
from colonnade.client.builder import build_job
from colonnade.core.errors import DuplicateJob, PartyAbsent
from colonnade.privacy.accounting import units_down
from colonnade.server.store.base import PartyRow
from colonnade.simulate.federation import create_federation
from colonnade.simulate.processes import Processes

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fork_server")]

Output = pytest.CaptureFixture[str]
# The second party is never asked for a feature in the one round; both pay for their means.
QUESTION = ("--target", "y", "--epsilon", "0.5", "--sampling", "serial", "--rounds", "1")


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    parties = sites(names=("hospital", "insurer", "lab"))
    made = create_federation(tmp_path, parties, cap_units=units_down(2.0))
    monkeypatch.setenv("COLONNADE_COORDINATOR", made.address)
    monkeypatch.setenv("COLONNADE_CREDENTIALS", str(made.operator_credentials))
    with Processes(made, tmp_path / "logs") as processes, processes.client() as client:
        processes.wait_for_parties(client)
        yield processes


def submit(capsys: Output, *options: str) -> tuple[int, dict[str, Any], str]:
    code = main(["job", "submit", *QUESTION, "--json", *options])
    shown = capsys.readouterr()
    return code, json.loads(shown.out.splitlines()[-1]), shown.err


def test_an_operator_is_asked_before_anything_is_spent_by_mistake(
    running: Processes, capsys: Output, tmp_path: Path
) -> None:
    lab = running.process("lab")
    lab.terminate()
    lab.wait()
    with running.client() as client:
        while any(offer.party == "lab" and offer.attached for offer in client.parties()):
            pass  # the coordinator has yet to notice
        code, told, error = submit(capsys)
        assert (code, told["error"]) == (4, "party_absent")
        assert "lab is away" in error
        assert len(error.strip().splitlines()) == 1
        with pytest.raises(PartyAbsent):
            build_job(client.parties(), JobOptions(), target="y")
        assert client.jobs() == []

        code, ended, _ = submit(capsys, "--without", "lab", "--watch")
        assert (code, ended["state"]) == (0, "finished")
        assert [party["party"] for party in ended["parties"]] == ["hospital", "insurer"]

        code, told, error = submit(capsys, "--without", "lab")
        assert (code, told["error"]) == (4, "duplicate_job")
        assert ended["job_id"][:12] in error
        asked = client.show(ended["job_id"]).job
        with pytest.raises(DuplicateJob):
            client.submit(replace(asked, salt=bytes(16), name="another"))
        assert len(client.jobs()) == 1
        code, again, _ = submit(capsys, "--without", "lab", "--watch", "--again")
        assert (code, again["state"]) == (0, "finished")
        assert again["job_id"] != ended["job_id"]
    check_notes(capsys, ended, tmp_path / "run")


def check_notes(capsys: Output, ended: dict[str, Any], out: Path) -> None:
    (unused,) = [party for party in ended["parties"] if party["features_used"] == 0]
    note = f"the model uses no feature of {unused['party']}, which paid rho "
    assert len(ended["notes"]) == 1
    for verb in ("watch", "show", "report"):
        assert main(["job", verb, ended["job_id"]]) == 0
        assert f"note: {note}" in capsys.readouterr().out, verb
    assert main(["job", "report", ended["job_id"], "--out", str(out)]) == 0
    assert note in capsys.readouterr().out
    (told,) = json.loads((out / "report.json").read_text())["unused"]
    assert told["spent"]["units"] == unused["spent_units"] > 0
    page = (out / "report.html").read_text()
    assert page.index(note[1:]) < page.index('class="figure')  # above all figures


def test_a_simulation_says_it_too(capsys: Output, tmp_path: Path) -> None:
    size = ("--rows", "500", "--features", "4", "--informative", "2", "--parties", "2")
    options = ("--sampling", "serial", "--rounds", "1", "--out", str(tmp_path / "run"))
    assert main(["simulate", *size, *options]) == 0
    assert "note     the model uses no feature of laboratory" in capsys.readouterr().out


def test_a_party_that_enrolled_and_never_came_is_missed(tmp_path: Path) -> None:
    made, names = founded(), NAMES[:2]

    def missed(address: str) -> None:
        with Client(address, credentials_of(made, "analyst")) as client:
            with pytest.raises(PartyAbsent, match="bank"):
                build_job(client.parties(), JobOptions(), target="y")
            job = build_job(client.parties(), JobOptions(), target="y", without=["bank"])
            assert {member.party for member in job.members} == set(names)

    async def run() -> None:
        async with everyone(made, names, tmp_path) as (hub, _):
            bank = PartyRow("bank", bytes(16), bytes(32))
            await hub.serving.worker.do(lambda: hub.serving.engine.parties.put(bank))
            await asyncio.to_thread(missed, hub.address)

    asyncio.run(run())


def test_a_job_that_would_use_nobody_is_asked_about_and_a_failed_one_is_retried(
    running: Processes, capsys: Output
) -> None:
    question = ("job", "submit", "--target", "y", "--method", "moments", "--json")
    # With epsilon 0.001 a correlation with the label is known up to several hundred.
    code = main([*question, "--epsilon", "0.001"])
    shown = capsys.readouterr()
    assert (code, json.loads(shown.out.splitlines()[-1])["error"]) == (3, "bad_input")
    assert shown.err.count("warning: no feature of") == 3
    with running.client() as client:
        assert client.jobs() == []
        lab = running.process("lab")
        lab.terminate()
        lab.wait()
        options = ("--epsilon", "0.001", "--parties", "hospital,lab", "--timeout", "1")
        code = main([*question, *options, "--yes", "--watch"])
        shown = capsys.readouterr()
        assert json.loads(shown.out.splitlines()[-1])["error"] == "job_ended"
        (failed,) = client.jobs()
        assert (failed.state, code) == ("failed", 8)
        assert main(["job", "list"]) == 0
        line, reason = capsys.readouterr().out.splitlines()
        assert failed.job_id[:12] in line
        assert "failed" in line
        assert "start that party again" in reason
        assert f"colonnade job retry {failed.job_id[:12]}" in reason
        assert main(["job", "retry", failed.job_id, "--json", "--yes"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["retries"] == failed.job_id
        asked, before = client.show(told["job_id"]).job, client.show(failed.job_id).job
        assert replace(asked, salt=before.salt) == before
        assert main(["job", "retry", told["job_id"]]) == 3  # it has not ended
