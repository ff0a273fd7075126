"""The operator's console: what it says of each state, and the whole path in a real browser."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.browser import CHROMIUM, Browser, browser
from support.federation import sites

from colonnade.client import Client
from colonnade.client.hub_views import CoordinatorView, ErrorView, PartySession
from colonnade.client.results import JobReport
from colonnade.client.views import JobView, PartyOffer, PartyView
from colonnade.console.coordinator.rounds import rounds
from colonnade.console.coordinator.view import operator_page
from colonnade.console.pages import rendered
from colonnade.privacy.accounting import units_down
from colonnade.simulate.federation import create_federation
from colonnade.simulate.processes import Processes

NOW = 1.7e9
HOSTILE = "<img src=x onerror=document.hacked=1>"


def offer(party: str, *, attached: bool = True, **session: Any) -> PartyOffer:
    return PartyOffer(
        party, attached, "00" * 16, 300, {}, {}, None, 1000, 490, session=PartySession(**session)
    )


def job(state: str = "running", *parties: PartyView, name: str = "cost") -> JobView:
    return JobView("ab" * 32, name, state, "", 1, 3, NOW - 60, 0.0, "analyst", parties)


def member(party: str, *, awaited: bool = False) -> PartyView:
    return PartyView(party, True, True, awaited, 5, 10, 124)


def hub(*errors: ErrorView) -> CoordinatorView:
    return CoordinatorView("study", "1.4.0", NOW - 3600, NOW, errors)


def row(number: int, party: str, payload: int, predicted: int) -> dict[str, Any]:
    return {
        "round": number,
        "party": party,
        "kind": "gram",
        "payload_bytes": payload,
        "predicted_bytes": predicted,
    }


def test_the_headline_says_whom_a_job_waits_for() -> None:
    running = job("running", member("hospital"), member("laboratory", awaited=True))
    page = operator_page(hub(), [offer("hospital"), offer("laboratory")], [running], {})
    assert page.headline == "One job waits for laboratory."
    assert page.live[0].waits == ((2, "laboratory"),)


def test_a_job_that_people_have_to_decide_on_says_so_and_a_failed_one_what_to_do() -> None:
    waits = PartyView("hospital", True, False, True, 0, 10, 0, waiting="0 of 2 agreed")
    asked, failed = job("proposed", waits), job("failed", member("hospital"))
    failed = replace(failed, reason="party hospital did not answer")
    page = operator_page(hub(), [offer("hospital")], [asked, failed], {})
    assert page.lead == "People at hospital have yet to decide."
    assert page.jobs[0].why == "hospital: 0 of 2 agreed"
    assert page.jobs[1].why == f"{failed.reason}; {failed.advice}"
    assert failed.advice


@pytest.mark.parametrize(
    ("state", "changes", "word"),
    [
        ("proposed", {"waiting": "0 of 2 agreed"}, "Waits for approval"),
        ("proposed", {}, "Waits for parties"),
        ("failed", {"refusal": "purpose not agreed"}, "Refused"),
        ("failed", {}, "Failed"),
        ("running", {"refusal": "one host of several"}, "Running"),
    ],
)
def test_a_job_that_people_decide_on_or_refused_is_called_so(
    state: str, changes: dict[str, Any], word: str
) -> None:
    asked = replace(job(state, replace(member("hospital"), **changes)), purpose="care")
    row = operator_page(hub(), [offer("hospital")], [asked], {}).jobs[0]
    assert (row.state[1], row.purpose) == (word, "care")


def test_an_ended_job_is_not_said_to_wait() -> None:
    waits = replace(member("laboratory"), waiting="0 of 1 agreed")
    assert job("running", waits).notes == ("laboratory: 0 of 1 agreed",)
    assert job("failed", waits).notes == ()


def test_who_is_away_and_whose_certificate_ends_is_said() -> None:
    offers = [
        offer("hospital", certificate_ends=NOW + 12 * 86400),
        offer("laboratory", attached=False, seen_at=NOW - 180, certificate_ends=NOW + 83 * 86400),
    ]
    page = operator_page(hub(), offers, [], {})
    assert page.chips == (("warn", "One party away"),)
    assert "Laboratory was last seen 3 min ago." in page.lead
    assert [each.certificate for each in page.parties] == [("warn", "12 days"), ("good", "83 days")]
    assert page.parties[0].left == "51.0\u00a0%"  # what is left rounds down


def test_an_empty_federation_says_so() -> None:
    page = operator_page(hub(), [], [], {})
    assert page.headline == "No party has enrolled yet."


def test_rounds_show_who_answered_who_is_waited_for_and_bytes_too_many() -> None:
    running = job("running", member("hospital"), member("laboratory", awaited=True))
    uplink = {
        "rows": [
            row(0, "hospital", 31, 31),
            row(0, "laboratory", 28, 28),
            row(1, "hospital", 172, 124),
        ]
    }
    found = rounds(running, JobReport({"uplink": uplink}))
    assert [[cell.state for cell in each.cells] for each in found] == [
        ["done", "done"],
        ["done", "wait"],
    ]
    assert [each.equal for each in found] == [True, False]


def test_a_round_that_nobody_has_answered_is_shown_as_waiting() -> None:
    running = job("running", member("hospital", awaited=True))
    found = rounds(running, JobReport({"uplink": {"rows": [row(0, "hospital", 31, 31)]}}))
    assert [(each.number, each.cells[0].state) for each in found] == [(0, "done"), (1, "wait")]


def test_names_that_others_chose_are_text_and_nothing_else() -> None:
    page = operator_page(
        hub(ErrorView(HOSTILE, 3, HOSTILE, NOW)),
        [offer(HOSTILE, program=HOSTILE)],
        [job("failed", member(HOSTILE), name=HOSTILE)],
        {},
    )
    html = rendered(
        "operator.html.j2",
        page=page,
        choice={"labels": [HOSTILE], "owners": [HOSTILE]},
        methods=[],
        losses=[],
        form_token="t",
    )
    assert "<img" not in html
    assert html.count("&lt;img") >= 6


@pytest.fixture(scope="module")
def running(fork_server: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    folder = tmp_path_factory.mktemp("console")
    made = create_federation(
        folder, sites(names=("hospital", "laboratory")), cap_units=units_down(5.0)
    )
    with Processes(made, folder / "logs") as processes:
        with processes.client() as client:
            processes.wait_for_parties(client)
        yield processes


@pytest.fixture
def link(running: Processes) -> Iterator[str]:
    """Start the console as people do; return the address that it prints."""
    made = running.federation
    command = [sys.executable, "-m", "colonnade.cli.main", "coordinator", "console", "--json"]
    command += ["--coordinator", made.address, "--credentials", str(made.operator_credentials)]
    console = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert console.stdout is not None
    yield json.loads(console.stdout.readline())["link"]
    console.terminate()
    assert console.wait(60) == 143
    console.stdout.close()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Browser]:
    with browser(tmp_path / "profile") as started:
        yield started
        assert started.errors == []


def until(page: Browser, condition: str) -> None:
    """Wait until something is so on the page."""
    found = page.run(
        "new Promise(done => { let left = 900; const look = () => "
        f"({condition}) ? done(true) : left-- ? setTimeout(look, 100) : done(false); look(); }})"
    )
    assert found, page.run("document.body.textContent")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_an_operator_plans_submits_watches_and_reads_in_a_browser(
    running: Processes, link: str, page: Browser
) -> None:
    page.open(link)
    assert page.run("document.querySelectorAll('#party-table tbody tr').length") == 2
    assert page.run("document.getElementById('h1').textContent") == (
        "Nothing is running; all two parties are connected."
    )
    until(page, "document.querySelector('#preview dl') !== null")  # before anything is chosen
    page.run(
        "document.getElementById('epsilon').value = '0.5';"
        "document.getElementById('purpose').value = 'care';"
        "document.querySelector('form[data-preview]').dispatchEvent(new Event('input'))"
    )
    until(page, "document.getElementById('preview').textContent.includes('ε\u00a00.5 at')")
    told = page.run("document.getElementById('preview').textContent")
    assert "hospital" in told
    assert "ε" in told
    page.follow("document.querySelector('form[data-preview]').requestSubmit()")
    # The page follows by itself until the job has ended.
    until(page, "document.querySelector('#job-table a') !== null")
    with Client(running.federation.address, str(running.federation.operator_credentials)) as client:
        (submitted,) = client.jobs()
        assert client.show(submitted.job_id).job.purpose == "care"
    assert submitted.state == "finished"
    report = page.run("document.querySelector('#job-table a').href")
    page.open(report)
    assert page.run("document.querySelectorAll('h1').length") == 1
    origin = link.partition("/enter")[0]
    for width in (390, 1280):
        page.open(f"{origin}/", width=width)
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.run(overflow) == 0
    if axe := os.environ.get("COLONNADE_AXE"):
        page.run(Path(axe).read_text("utf-8") + "; 1")
        # With a preview on its way, too: what it replaces stays readable.
        until(page, "document.querySelector('#preview dl') !== null")
        page.run("document.getElementById('preview').setAttribute('aria-busy', 'true')")
        found = page.run("axe.run().then(all => all.violations.map(each => each.id))")
        assert found == []
