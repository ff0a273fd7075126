"""The Python client does what ``colonnade job`` does, against a running coordinator."""

import doctest
import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.federation import sites

from colonnade.cli.main import main
from colonnade.client import AdmmOptions, Client, JobOptions, JobReport, JobView
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadIdentity, BadInput, BadMessage, DuplicateJob
from colonnade.data.model import load_model
from colonnade.privacy.accounting import units_down
from colonnade.simulate.federation import create_federation
from colonnade.simulate.processes import Processes

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fork_server")]

NAMES = ("hospital", "laboratory")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    folder = tmp_path_factory.mktemp("client")
    made = create_federation(folder, sites(names=NAMES), cap_units=units_down(5.0))
    with Processes(made, folder / "logs") as processes:
        with processes.client() as client:
            processes.wait_for_parties(client)
        yield processes


@pytest.fixture
def client(running: Processes) -> Iterator[Client]:
    made = running.federation
    with Client(made.address, str(made.operator_credentials)) as found:
        yield found


def test_the_examples_of_the_client_run(client: Client) -> None:
    module = importlib.import_module("colonnade.client")
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    names = {"client": client, "JobOptions": JobOptions, "AdmmOptions": AdmmOptions}
    for told, least in ((module, 12), (module.Client, 1)):
        (examples,) = finder.find(told, "client", globs=names)
        assert len(examples.examples) >= least
        assert runner.run(examples).failed == 0


def test_a_plan_is_what_the_command_prints_and_costs_nothing(
    client: Client,
    running: Processes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLONNADE_COORDINATOR", running.federation.address)
    monkeypatch.setenv("COLONNADE_CREDENTIALS", str(running.federation.operator_credentials))
    before = [offer.used_units for offer in client.parties()]
    plan = client.plan(JobOptions(epsilon=0.7, rounds=3), target="y", without=["laboratory"])
    options = ("--epsilon", "0.7", "--rounds", "3", "--without", "laboratory")
    assert main(["job", "submit", "--target", "y", *options, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == plan.description
    assert (plan.method, plan.rounds, list(plan.epsilon_by_party)) == ("frank-wolfe", 3, [NAMES[0]])
    assert plan.job.delta == plan.delta
    assert client.plan(plan.spec).description == plan.description
    assert [offer.used_units for offer in client.parties()] == before
    over = client.plan_admm(AdmmOptions(epsilon=0.7, rounds=3), target="y")
    command = ["job", "admm", "--target", "y", "--epsilon", "0.7", "--rounds", "3"]
    assert main([*command, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == over.description


def test_a_report_is_typed_and_written_as_the_command_writes_it(
    client: Client, tmp_path: Path
) -> None:
    seen: list[JobView] = []
    job_id = client.submit(JobOptions(epsilon=0.3, method="moments"), target="y", name="typed")
    view = client.wait(job_id, on_change=seen.append)
    assert seen[-1] == view
    assert view.name == "typed"
    report = client.report(job_id[:12])
    assert report.job_id == job_id
    assert 0.0 < max(report.epsilon_by_party.values()) < report.epsilon <= 0.3
    assert report.notes == view.notes
    folder = report.write(tmp_path / "run")
    assert sorted(path.name for path in folder.iterdir()) == [
        "model.json",
        "report.html",
        "report.json",
    ]
    assert load_model(folder / "model.json") == report.model
    assert json.loads((folder / "report.json").read_text()) == report.document
    assert client.solve(job_id, "ball").job_id == job_id
    with pytest.raises(DuplicateJob):
        client.submit(JobOptions(epsilon=0.3, method="moments"), target="y")
    again = client.submit(JobOptions(epsilon=0.3, method="moments"), target="y", again=True)
    assert again != job_id
    assert client.wait(again).state == "finished"


def test_arguments_that_cannot_be_are_named_without_options_of_a_command(client: Client) -> None:
    for options, parameter in (
        (JobOptions(epsilon=-1.0), "epsilon"),
        (JobOptions(delta=0.5), "delta"),
        (JobOptions(scope="everybody"), "scope"),
        (JobOptions(loss="hinge"), "loss"),
        (JobOptions(rounds=0), "rounds"),
        (JobOptions(label_owner="bank"), "label_owner"),
    ):
        with pytest.raises(BadArgument) as refused:
            client.plan(options, target="y")
        assert refused.value.parameter == parameter
        assert "--" not in str(refused.value)
    for over, parameter in (
        (AdmmOptions(gamma=float("nan")), "gamma"),
        (AdmmOptions(sampled=9), "sampled"),
        (AdmmOptions(regulariser="l0"), "regulariser"),
        (AdmmOptions(sampling="all"), "sampling"),
    ):
        with pytest.raises(BadArgument) as refused:
            client.plan_admm(over, target="y")
        assert refused.value.parameter == parameter
    with pytest.raises(BadInput, match="'bank'"):
        client.plan(target="y", parties=["bank"])
    with pytest.raises(ValueError, match="target"):
        client.plan(JobOptions())
    with pytest.raises(ValueError, match="as it is"):
        client.submit(client.plan(target="y"), target="y")


def test_only_an_operator_is_a_client(running: Processes) -> None:
    made = running.federation
    with pytest.raises(BadIdentity, match="operator"):
        Client(made.address, made.coordinator_config.parent / "pki")
    with pytest.raises(BadInput):
        Client("hub.example.org:7443", identity="spiffe://simulation/operator/analyst")


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "state"),
        ({"uplink": {"payload_bytes": "many"}}, "payload_bytes"),
        ({"privacy": []}, "epsilon"),
        ({"privacy": {"parties": [{}]}}, "epsilon_by_party"),
        ({"model": {"format": "another"}}, "model"),
    ],
)
def test_a_report_that_cannot_be_is_refused(document: dict[str, object], field: str) -> None:
    with pytest.raises(BadMessage):
        getattr(JobReport(document), field)
