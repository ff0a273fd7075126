"""The job verbs, a real federation of processes behind them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade.cli.main import main
from colonnade.core.fixedpoint import Bounds
from colonnade.data.model import LinearModel
from colonnade.methods.job import job_id
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.simulate.federation import Federation, create_federation
from colonnade.simulate.processes import Processes
from colonnade.simulate.sites import Site, SiteColumn

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fork_server")]

CAP = units_down(rho_of(4.0, 1e-6))
N_ROWS = 2000


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    draw = np.random.default_rng(5)
    columns = draw.normal(size=(4, N_ROWS))
    label = SiteColumn("cost", Bounds(-4.0, 4.0), columns[0] - columns[2])
    sites = [
        Site(
            name,
            [SiteColumn(f"x{i}", Bounds(-3.0, 3.0), columns[i]) for i in (2 * k, 2 * k + 1)],
            label,
        )
        for k, name in enumerate(("hospital", "insurer"))
    ]
    folder = tmp_path_factory.mktemp("federation")
    made = create_federation(folder, sites, cap_units=CAP)
    with Processes(made, folder / "logs") as processes, processes.client() as client:
        processes.wait_for_parties(client)
        yield made


@pytest.fixture
def as_operator(federation: Federation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLONNADE_COORDINATOR", federation.address)
    monkeypatch.setenv("COLONNADE_CREDENTIALS", str(federation.operator_credentials))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    code = main([*arguments, "--json"])
    out = capsys.readouterr().out.strip().splitlines()
    return code, json.loads(out[-1])


@pytest.mark.usefixtures("as_operator")
def test_a_job_is_submitted_watched_shown_and_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    spec = tmp_path / "job.spec"
    options = ("--target", "cost", "--epsilon", "1", "--rounds", "4", "--write-spec", str(spec))
    code, ended = run(capsys, "job", "submit", *options, "--watch")
    assert (code, ended["state"], ended["rounds_done"]) == (0, "finished", 4)
    name = str(ended["job_id"])
    assert name == job_id(spec.read_bytes())
    # The same bytes are the same job.
    assert run(capsys, "job", "submit", "--spec", str(spec)) == (0, {"job_id": name})
    code, listed = run(capsys, "job", "list")
    assert [job["job_id"] for job in listed["jobs"]].count(name) == 1  # type: ignore[attr-defined]
    code, shown = run(capsys, "job", "show", name[:10])
    assert shown["spec"]["rounds"] == 4  # type: ignore[index]
    out = tmp_path / "run"
    code, report = run(capsys, "job", "report", name[:10], "--out", str(out))
    assert report["quality"] is None  # a real job's report has none
    assert report["uplink"]["payload_bytes"] == report["uplink"]["predicted_bytes"]  # type: ignore[index]
    model = LinearModel.from_json((out / "model.json").read_text())
    assert {feature.party for feature in model.features} == {"hospital", "insurer"}
    assert "<svg" in (out / "report.html").read_text()
    assert run(capsys, "job", "watch", name)[0] == 0


def left(capsys: pytest.CaptureFixture[str]) -> list[float]:
    parties: Any = run(capsys, "job", "parties")[1]["parties"]
    return [party["left_rho"] for party in parties]


@pytest.mark.usefixtures("as_operator")
def test_a_moments_job_is_solved_again_at_no_further_cost(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ("--target", "cost", "--epsilon", "2", "--method", "moments")
    code, ended = run(capsys, "job", "submit", *options, "--watch")
    assert (code, ended["state"]) == (0, "finished")
    name, before = str(ended["job_id"]), left(capsys)
    report: Any = run(capsys, "job", "report", name, "--out", str(tmp_path / "run"))[1]
    assert report["method"] == "moments"
    assert report["uplink"]["payload_bytes"] == report["uplink"]["predicted_bytes"] > 0

    def solve(*options: str) -> Any:
        code, model = run(capsys, "job", "solve", name, *options)
        assert code == 0
        return model

    def coefficients(model: Any) -> dict[str, float]:
        return {feature["name"]: feature["coef_scaled"] for feature in model["features"]}

    own = solve("--penalty", "ball")
    assert own == report["model"]  # what the job itself solves
    assert not any(coefficients(solve("--penalty", "l1", "--strength", "50")).values())
    weak = coefficients(solve("--penalty", "ridge", "--strength", "0.01"))
    strong = coefficients(solve("--penalty", "ridge", "--strength", "5"))
    assert 0.0 < abs(strong["x0"]) < abs(weak["x0"])
    file = tmp_path / "box.json"
    boxed = solve("--penalty", "box", "--low", "0", "--out", str(file))
    assert min(coefficients(boxed).values()) >= 0.0
    assert coefficients(boxed)["x0"] > 0.0  # the label is x0 - x2
    model = LinearModel.from_json(file.read_text())
    assert [feature.coef_scaled for feature in model.features] == list(coefficients(boxed).values())
    assert left(capsys) == before
    # What cannot be solved is refused in one line.
    for wrong in (
        ("--penalty", "elastic-net", "--mix", "2"),
        ("--penalty", "l1", "--strength", "-1"),
        ("--penalty", "ball", "--radius", "nan"),
        ("--penalty", "box", "--low", "2", "--high", "1"),
        ("--penalty", "box", "--out", str(file)),
    ):
        assert main(["job", "solve", name, *wrong]) == 3
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.usefixtures("as_operator")
def test_a_frank_wolfe_job_has_one_solution(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--target", "cost", "--epsilon", "0.1", "--rounds", "2", "--watch")
    name = str(run(capsys, "job", "submit", *options)[1]["job_id"])
    assert main(["job", "solve", name, "--penalty", "ridge"]) == 3
    assert "has one solution" in capsys.readouterr().err


@pytest.mark.usefixtures("as_operator")
def test_parties_show_what_they_offer(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(capsys, "job", "parties")
    parties = {party["party"]: party for party in found["parties"]}  # type: ignore[attr-defined]
    assert code == 0
    assert parties["hospital"]["n_rows"] == N_ROWS
    assert parties["insurer"]["features"] == {"x2": [-3.0, 3.0], "x3": [-3.0, 3.0]}
    assert parties["insurer"]["label"] == "cost"


@pytest.mark.usefixtures("as_operator")
def test_a_dry_run_prints_the_plan_and_submits_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    _, before = run(capsys, "job", "list")
    code, plan = run(capsys, "job", "submit", "--target", "cost", "--rounds", "7", "--dry-run")
    assert (code, plan["rounds"]) == (0, 7)
    assert plan["joint_max_epsilon"] <= 1.0  # type: ignore[operator]
    assert run(capsys, "job", "list")[1] == before


@pytest.mark.usefixtures("as_operator")
@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--target", "price"), 3, "no party offers the label 'price'; they offer 'cost'"),
        (("--target", "cost", "--epsilon", "-1"), 3, "--epsilon"),
        (("--target", "cost", "--delta", "2"), 3, "--delta"),
        (("--target", "cost", "--epsilon", "50"), 4, "its ledger has"),
        (("--target", "cost", "--parties", "hospital,bank"), 3, "'bank' is not enrolled"),
        (("--target", "cost", "--rounds", "0"), 3, "round"),
        (("--spec", "/nowhere/job.spec"), 3, "no such file"),
    ],
)
def test_a_job_that_cannot_be_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], code: int, text: str
) -> None:
    assert main(["job", "submit", *options]) == code
    error = capsys.readouterr().err.strip()
    assert text in error
    assert "\n" not in error


@pytest.mark.usefixtures("as_operator")
def test_an_unknown_job_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("show", "watch", "cancel", "report"):
        assert main(["job", verb, "ffffffff"]) == 3
        assert "there is no job 'ffffffff'" in capsys.readouterr().err


def test_a_coordinator_that_is_not_there_has_an_exit_code_of_its_own(
    federation: Federation, capsys: pytest.CaptureFixture[str]
) -> None:
    credentials = str(federation.operator_credentials)
    where = ("--coordinator", "127.0.0.1:1", "--credentials", credentials)
    assert main(["job", "list", *where]) == 7
    assert "127.0.0.1:1" in capsys.readouterr().err


def test_a_party_may_look_but_not_submit(
    federation: Federation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLONNADE_COORDINATOR", federation.address)
    monkeypatch.setenv("COLONNADE_CREDENTIALS", str(federation.folder / "hospital" / "pki"))
    assert main(["job", "list"]) == 0
    assert main(["job", "submit", "--target", "cost"]) == 4
    assert "only operators do this" in capsys.readouterr().err


def test_preflight_of_a_running_federation_names_what_is_taken(
    federation: Federation, capsys: pytest.CaptureFixture[str]
) -> None:
    # The processes hold their port, database and ledgers, and preflight says so.
    code, found = run(capsys, "preflight", "--coordinator", str(federation.coordinator_config))
    failed = {check["check"]: check["text"] for check in found["checks"] if not check["ok"]}  # type: ignore[attr-defined]
    assert (code, set(failed)) == (1, {"port", "database"})
    code, found = run(capsys, "preflight", "--party", str(federation.party_config("hospital")))
    checks = {check["check"]: check for check in found["checks"]}  # type: ignore[attr-defined]
    assert (code, [name for name, check in checks.items() if not check["ok"]]) == (1, ["ledger"])
    assert "accepts this certificate" in checks["coordinator"]["text"]
    assert checks["clock"]["ok"]
