"""What a report of a job over clients says: rounds, bytes and amounts, in the words of clients."""

import json
import secrets
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.clients import PRICE, ClientDesk, admm_job
from support.entropy import shake

from colonnade.cli.main import main
from colonnade.cli.progress import summary
from colonnade.client import JobView, PartyView
from colonnade.client.admm_planning import _participations
from colonnade.linear.losses import LOGISTIC
from colonnade.methods.admm.choices import Aggregate, Variant
from colonnade.methods.admm.plan import participations_of
from colonnade.methods.admm.prox import ClientRows
from colonnade.methods.job import Job
from colonnade.report import read, to_html
from colonnade.report.schema_parts import Clients
from colonnade.report.views.clients import shortfall
from colonnade.server.engine.progress import find_job, run_of
from colonnade.server.results import report_of
from colonnade.simulate.admm.run import Dealt, judged
from colonnade.v1 import release_pb2

TWO = {"gateway": 6, "lab": 1}


@pytest.fixture(autouse=True)
def known_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_bytes", lambda size: shake("sampling")(size))


def reported(job: Job, away: dict[int, set[int]] | None = None) -> dict[str, Any]:
    """Run a job and return its report as a reader gets it."""
    desk = ClientDesk(TWO)
    desk.side("gateway").away_in = away or {}
    name = desk.run(job)
    while name in desk.engine.runs:
        desk.now += 1.0
        desk.deliver(desk.do(desk.engine.tick))
    run = run_of(desk.engine, desk.store, find_job(desk.engine, desk.store, name))
    report = report_of(desk.engine, desk.store, run)
    for party in TWO:  # the newest receipt is of one account, which need not have paid most
        newest = release_pb2.Release.FromString(desk.engine.parties[party].latest)
        report["privacy"][f"newest {party}"] = newest.receipt.spent_units
    desk.store.close()
    found: dict[str, Any] = json.loads(json.dumps(report))
    return found


def told(report: dict[str, Any]) -> Clients:
    clients = read(report).clients
    assert clients is not None
    return clients


def short_job(**changes: Any) -> dict[str, Any]:
    away = {number: {number % 6, (number + 2) % 6, (number + 3) % 6} for number in range(99)}
    return reported(admm_job(TWO, sampled=5, minimum=4, rounds=3, **changes), away)


def test_every_round_is_counted_against_its_minimum_whatever_it_took() -> None:
    report = short_job()
    clients, uplink = report["clients"], report["uplink"]
    assert [each["round"] for each in clients["rounds"]] == [1, 2, 3]
    assert all(each["done"] and each["answers"] >= 4 for each in clients["rounds"])
    assert all(each["answers"] <= each["asked"] <= 7 for each in clients["rounds"])
    assert sum(each["drawings"] for each in clients["rounds"]) > 3
    assert sum(each["answers"] for each in clients["rounds"]) == clients["answers"]
    assert (clients["minimum"], clients["unused"]) == (4, 0)
    # Bytes and the model's path are by round too, not by drawing.
    assert {row["round"] for row in uplink["rows"]} <= {0, 1, 2, 3}
    keys = [(row["round"], row["party"], row["kind"]) for row in uplink["rows"]]
    assert len(set(keys)) == len(keys)
    by_round = {
        each["round"]: sum(
            row["messages"]
            for row in uplink["rows"]
            if (row["round"], row["kind"]) == (each["round"], "displacement")
        )
        for each in clients["rounds"]
    }
    assert by_round == {each["round"]: each["answers"] for each in clients["rounds"]}
    assert [point["round"] for point in report["path"]] == [0, 1, 2, 3]
    assert [point["round"] for point in clients["curves"]] == [0, 1, 2, 3]
    assert "Further drawings" in shortfall(told(report), rounds=3)


def test_a_failed_job_says_how_many_answers_did_not_move_the_model() -> None:
    away = {number: {0, 1, 2} for number in range(2, 99)}
    report = reported(admm_job(TWO, minimum=5, rounds=3, party_timeout=30), away)
    assert (report["state"], report["rounds"]["done"]) == ("failed", 1)
    last = report["clients"]["rounds"][-1]
    assert (last["round"], last["answers"], last["done"]) == (2, 4, False)
    assert report["clients"]["unused"] == 4
    assert len(report["path"]) == 2
    page = to_html(report)
    assert "4 answers of the unfinished round" in page
    assert "round 2 of 3 had 4 answers and needs 5" in page


def test_bytes_are_by_client_and_what_was_predicted_is_a_maximum() -> None:
    report = reported(admm_job(TWO, sampled=4, rounds=5, participations=4))
    uplink, size = report["uplink"], report["clients"]["body_bytes"]
    each = uplink["clients"]
    assert each["kind"] == "displacement"
    assert sum(map(sum, each["answers"].values())) == 20
    for party, answers in each["answers"].items():
        assert each["payload_bytes"][party] == [size * count for count in answers]
    assert sum(map(sum, each["payload_bytes"].values())) == uplink["payload_bytes"] == 20 * size
    assert uplink["predicted_most_bytes"] == 7 * 4 * size
    page = to_html(report)
    assert f"20 answers of {size} bytes each" in page
    assert "predicted before the job" not in page


PLAN: dict[str, Any] = {
    "variant": Variant.PLANNED,
    "radii": (1024, 800),
    "intercept_rounds": 2,
    "intercept_units": PRICE // 2,
    "client_rows": 4,
    "rounds": 4,
    "sampled": 4,
}


def test_a_report_of_a_plan_says_what_each_kind_cost_and_sent() -> None:
    job = admm_job(TWO, **PLAN)
    report, spec = reported(job), job.method.spec  # type: ignore[attr-defined]
    clients, uplink = report["clients"], report["uplink"]
    assert (clients["variant"], clients["meant"]) == ("planned", 2 * 4 + 2 * 4)
    assert clients["local"]["max"]["units"] <= clients["local"]["promised"]["units"]
    assert uplink["payload_bytes"] == uplink["predicted_bytes"] <= uplink["predicted_most_bytes"]
    sent = sum(map(sum, uplink["clients"]["payload_bytes"].values()))
    assert sent == uplink["payload_bytes"] == 8 * spec.body_bytes + 7 * spec.intercept_bytes
    page = to_html(report)
    assert "then the intercept alone" in page
    assert "Hosts released the sums" not in page


def test_a_report_of_sums_says_what_left_the_hosts_and_against_whom_it_holds() -> None:
    report = reported(admm_job(TWO, **PLAN, minimum=3, aggregate=Aggregate.HOST))
    alone = reported(admm_job(TWO, **PLAN, minimum=3))
    uplink = report["uplink"]
    assert uplink["payload_bytes"] == uplink["predicted_bytes"]
    assert uplink["clients"]["sums"]
    assert uplink["clients"]["payload_bytes"] == {}
    page = to_html(report)
    assert "holds against everybody but its host" in page
    assert "sums of" in page
    # One sum may carry a whole round: the figure that nobody enforces counts one noise, not three.
    assert report["clients"]["central"]["epsilon"] > alone["clients"]["central"]["epsilon"]


def test_what_clients_spent_under_the_cap_is_never_less_than_in_this_job() -> None:
    low = False
    for rounds in range(2, 9):
        privacy = reported(admm_job(TWO, sampled=3, rounds=rounds))["privacy"]
        for party in privacy["parties"]:
            assert party["ledger_spent"]["units"] >= party["spent"]["units"]
            low |= privacy[f"newest {party['party']}"] < party["spent"]["units"]
    assert low  # the newest receipt alone would have said less


def test_a_report_counts_clients_and_speaks_of_them() -> None:
    report = reported(admm_job(TWO, sampled=4, rounds=3))
    assert report["n_clients"] == 7
    assert "n_rows" not in report
    page = to_html(report)
    words = page[page.index("<summary>Glossary</summary>") :]
    assert "replacing all the rows of one client" in words
    for wrong in (
        "person's",
        "row at a party",
        "somebody whose row",
        "every party",
        "number of rows",
    ):
        assert wrong not in words
    privacy = page[page.index('<section id="privacy"') : page.index('<section id="clients"')]
    assert "the label" not in privacy
    assert "one person" not in privacy
    assert "learn about one client" in privacy
    job = page[page.index("<summary>All parameters") : page.index("<summary>Glossary")]
    for raw in ("round_timeout_s", "dual_weight", "release_units", "box", ">noise<"):
        assert raw not in job
    assert "least answers of a round" in job
    model = page[page.index('<section id="model"') : page.index('<section id="privacy"')]
    assert "held by" not in model
    assert "<bdi>clients</bdi>" not in model
    assert "7 clients each hold rows of their own about the same columns" in page


def test_answers_that_could_not_be_drawn_are_explained() -> None:
    report = reported(admm_job(TWO, sampled=5, minimum=1, rounds=4, participations=2))
    clients = report["clients"]
    assert clients["answers"] < 20
    said = shortfall(told(report), rounds=4)
    assert f"{20 - clients['answers']} fewer than the 20 answers" in said
    assert f"{clients['at_limit']} clients were at their limit (2 answers each)" in said


@pytest.mark.parametrize("classifies", [False, True])
def test_a_simulated_report_has_every_measure_and_says_what_its_reference_promises(
    classifies: bool,
) -> None:
    changes: dict[str, Any] = {"loss": LOGISTIC} if classifies else {}
    job = admm_job(TWO, sampled=4, rounds=3, **changes)
    draw = np.random.default_rng(1)
    clients = [
        ClientRows(
            draw.integers(-9, 9, (3, 5)).astype(np.int16), np.array([-9, 9, 9, -9, 9], np.int16)
        )
        for _ in range(7)
    ]
    dealt = Dealt((), tuple(clients), held_out=clients[0])
    found = judged(reported(job), job.method.spec, dealt, seed=0)  # type: ignore[attr-defined]
    quality = found.report["quality"]
    assert (quality["rows"], quality["n_rows"]) == ("held-out", 5)
    assert quality["objective_gap"] == found.ours.objective_gap > 0.0
    names = [each["metric"] for each in quality["others"]]
    assert names == ["objective above the best, fitted rows", *(["accuracy"] if classifies else [])]
    assert quality["metric"] == ("auc" if classifies else "r2")
    page = to_html(found.report)
    part = page[page.index("Simulation only") :]
    assert f'data-value="{found.ours.objective_gap!r}"' in part
    if classifies:
        assert f'data-value="{found.ours.score!r}"' in part
    epsilon = found.report["clients"]["local"]["promised"]["epsilon"]
    assert f"Its epsilon {epsilon:.3g}" in part
    assert "all rows of one client" in part


def test_columns_that_all_share_have_no_partys_colour() -> None:
    page = to_html(reported(admm_job(TWO, sampled=4, rounds=3)))
    plot = page[page.index('id="path-plot"') : page.index("<figcaption>")]
    assert "curve sink" in plot
    assert not {f"curve s{colour}" for colour in range(7) if f"curve s{colour}" in plot}


def test_progress_says_whose_budget_is_left() -> None:
    party = PartyView("host-1", True, True, False, 2 * PRICE, 2 * PRICE, 90)
    view = JobView("j", "n", "running", "", 2, 10, 0.0, 0.0, "op", (party,))
    # Of the job's own price: a ledger that could pay for many more jobs is not empty.
    assert "left of the job's price, least of any client: host-1 0%" in summary(
        replace(view, over_clients=True)
    )
    assert "left of the job's price: host-1 0%" in summary(view)


NO_DELTA = (
    "--delta must lie above 0 and not above 0.001: a larger one would let rows be published as "
    "they are; 1e-06 is usual"
)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--epsilon", "1000", "--epsilon must lie above 0 and below 1000"),
        ("--epsilon", "nan", "--epsilon must lie above 0 and below 1000"),
        ("--delta", "1", NO_DELTA),
        ("--gamma", "-1", "--gamma must lie between 2**-40 and 2**40"),
        ("--lipschitz", "0", "--lipschitz must lie between 2**-40 and 2**40"),
        ("--step", "2", "--step must lie above 2**-17 and not above 1"),
        ("--minimum", "0", "--minimum must lie between 1 and the 100 clients of a round"),
        ("--strength", "-1", "--strength must lie between 0 and 1000000"),
        ("--rounds", "0", "--rounds must lie between 1 and 1000000"),
    ],
)
def test_a_wrong_option_is_named(
    option: str, value: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "admm", option, value]) == 3
    assert capsys.readouterr().err == f"colonnade: {says}\n"


@pytest.mark.parametrize(
    ("rounds", "sampled", "minimum", "clients"),
    [(10, 100, 50, 500), (10, 100, 100, 500), (4, 20, 20, 40), (3, 7, 7, 7), (1, 1, 1, 1)],
)
def test_the_limit_of_clients_leaves_every_round_its_minimum(
    rounds: int, sampled: int, minimum: int, clients: int
) -> None:
    limit = _participations(rounds, sampled, minimum, clients)
    assert participations_of(rounds, sampled, clients) <= limit <= rounds
    if limit < rounds:
        taken = np.zeros(clients, int)  # the worst drawings: the same clients up to their limit
        for _ in range(rounds - 1):
            taken[np.flatnonzero(taken < limit)[:sampled]] += 1
        assert (taken < limit).sum() >= minimum
