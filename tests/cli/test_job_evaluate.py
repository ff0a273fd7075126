"""An evaluation from the command line: train, grant, score those kept out, release, report."""

import json
from pathlib import Path

import pytest
from support.federation import sites

from colonnade.cli.main import main
from colonnade.core.errors import EXIT_BAD_INPUT, EXIT_REFUSED
from colonnade.privacy.accounting import units_down
from colonnade.simulate.federation import create_federation
from colonnade.simulate.prediction import grant
from colonnade.simulate.processes import Processes

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fork_server")]

Output = pytest.CaptureFixture[str]


def test_a_model_is_measured_on_people_who_were_kept_out_of_its_fit(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create_federation(
        tmp_path, sites(n_rows=3000, names=("hospital", "lab")), cap_units=units_down(2.0)
    )
    monkeypatch.setenv("COLONNADE_COORDINATOR", made.address)
    monkeypatch.setenv("COLONNADE_CREDENTIALS", str(made.operator_credentials))
    asked = ("--target", "y", "--loss", "logistic", "--epsilon", "4", "--evaluate", "1")
    with Processes(made, tmp_path / "logs") as running, running.client() as client:
        running.wait_for_parties(client)
        assert main(["job", "submit", *asked, "--method", "moments", "--watch", "--json"]) == 0
        job = json.loads(capsys.readouterr().out.splitlines()[-1])["job_id"]
        assert main(["job", "evaluate", job, "--epsilon", "1", "--dry-run", "--json"]) == 0
        planned = json.loads(capsys.readouterr().out)
        # Without a grant nobody is scored, and nothing is spent.
        before = client.parties()[0].used_units
        assert main(["job", "evaluate", job, "--json"]) != 0
        assert client.parties()[0].used_units == before
    grant(made, job, "hospital", purpose="evaluation")
    capsys.readouterr()
    with Processes(made, tmp_path / "logs") as running, running.client() as client:
        running.wait_for_parties(client)
        assert main(["job", "evaluate", job, "--epsilon", "1", "--json"]) == 0
        # Whatever the verb, the job says who asks: caps by operator count on it.
        asked_by = {client.show(view.job_id).job.requested_by for view in client.jobs()}
        assert asked_by == {"spiffe://simulation/operator/analyst"}
        report = client.report(job)
        found = report["evaluation"]
        # Another answer to the same is another release: only on purpose, and not for nothing.
        n_jobs, spent = len(client.jobs()), client.parties()[0].used_units
        capsys.readouterr()
        assert main(["job", "evaluate", job, "--epsilon", "1", "--json"]) == EXIT_REFUSED
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["error"] == "duplicate_job"
        vain = ["--epsilon", "0.01", "--again", "--json"]
        assert main(["job", "evaluate", job, *vain]) == EXIT_BAD_INPUT
        assert (len(client.jobs()), client.parties()[0].used_units) == (n_jobs, spent)
    assert (found["metric"], found["party"]) == ("auc", "hospital")
    assert planned["people"] == pytest.approx(600, abs=60)
    assert found["n_rows"] == pytest.approx(planned["people"], abs=80)
    assert 0.95 < found["epsilon"] <= 1.0
    # The label is the sign of a sum of two columns, one at each party.
    assert found["value"] > 0.8
    assert planned["expected_error"] < 0.12
    assert report.write(tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "kept out of the fit" in page
    assert "calibration-plot" in page
