"""The officer's console: what it says, and the whole path of asking and deciding in a browser."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.browser import CHROMIUM, Browser, browser
from support.federation import sites

from colonnade.cli.main import main
from colonnade.client import Client, JobOptions
from colonnade.console.guard import Door
from colonnade.console.names import symbols, whose
from colonnade.console.party.app import OfficerConsole
from colonnade.console.party.budget_plot import HEIGHT, budget_plot
from colonnade.console.party.entries import Spending, in_words, parsed, spending
from colonnade.console.party.policy_words import changed_lines, sentences
from colonnade.console.party.view import amount, budget_of
from colonnade.ledger.caps import ScopedBudget
from colonnade.ledger.create import open_ledger
from colonnade.ledger.decisions import Standing
from colonnade.ledger.storage.snapshot import read_snapshot
from colonnade.party.config import load_config
from colonnade.party.officer.case import CapAt, Case, Leaving, Similar
from colonnade.party.officer.case import sentences as sentences_of
from colonnade.party.policy_file import load_policy
from colonnade.privacy.accounting import format_units, units_down, units_up
from colonnade.simulate.federation import Federation, create_federation
from colonnade.simulate.processes import Processes

HOSTILE = "<img src=x onerror=document.hacked=1>"
NAMES = ("hospital", "laboratory")


RHO = units_up(Fraction(1, 2))
ALIGNS = Case(
    *("ab" * 32, "alignment", "hub", "", "", "alignment", "alignment, 14 rounds", 0, "p", ("q",)),
    *((), "", 10, False, (Leaving("points", 1, 80),), RHO, 8.3e-11),
    (CapAt("alignments", 2 * RHO, 0, RHO), CapAt("month 2026-11", 4 * RHO, 0, RHO)),
    *("", (), "waiting", 0, 1, ""),
)


def line(**entry: object) -> str:
    return json.dumps({"seq": 1, "time": 1.7e9, **entry})


def test_spending_is_counted_by_the_purpose_that_the_job_stated() -> None:
    charge = {"type": "charged", "account": "", "round": 0, "kind": "gram"}
    entries = parsed(
        [
            line(type="proposed", job="a", purpose="care"),
            line(**charge, job="a", units=3),
            line(**charge, job="b", units=5),
            line(**charge | {"account": "membership"}, job="c", units=7),
            line(**charge, job="a", units=2),
        ]
    )
    found = [dict(each.by_purpose) for each in spending(entries, "")]
    assert found == [{"care": 3}, {"care": 3, "": 5}, {"care": 5, "": 5}]


def test_the_plot_is_as_high_as_the_share_of_the_cap() -> None:
    history = [Spending(0.0, {"care": 25}), Spending(50.0, {"care": 25, "cost": 25})]
    plot = budget_plot(history, 100, 100.0)
    assert plot is not None
    last = [block for block in plot.blocks if block.x == 50.0]
    assert sum(block.height for block in last) == pytest.approx(HEIGHT / 2)
    assert [block.width for block in last] == [50.0, 50.0]
    assert budget_plot([], 100, 1.0) is None


def test_charges_to_the_account_of_the_people_are_told_in_words() -> None:
    joined = in_words(parsed([line(type="joined", reason="one cap")])[0])
    assert joined.what == "Joined the account of the people: one cap"
    paid = parsed([line(type="person", job="a" * 64, units=3, wasted=wasted) for wasted in (0, 1)])
    assert [in_words(each).units for each in paid] == [3, 3]
    assert "not used" in in_words(paid[1]).what


def test_console_and_command_line_say_the_same_digits() -> None:
    for delta in (None, 1e-9):
        for left in (False, True):
            said = amount(2**46 + 1, 2**50, delta=delta, left=left).text
            words = format_units(2**46 + 1, delta, left=left)
            assert said.replace("ε\u00a0", "epsilon ").replace("ρ\u00a0", "rho ") == words
    assert amount(2**46, 2**50).text != amount(2**46, 2**50, left=True).text
    assert amount(2**46, 2**50).text != amount(2**46, 2**50, delta=1e-9).text


def test_a_cap_in_the_ledger_rounds_down_and_is_of_somebody() -> None:
    whose = {("", ""): "Cap set", ("month", ""): "Cap of each month", ("purpose", "x"): "purpose x"}
    for (scope, account), words in whose.items():
        entry = line(type="cap", scope=scope, account=account, reason="why", units=2**46)
        said = in_words(parsed([entry])[0])
        assert words in said.what
        assert said.allows
    assert not in_words(parsed([line(type="admitted", job="a", units=3)])[0]).allows


def test_what_became_of_earlier_jobs_ends_a_sentence() -> None:
    others = ["ended", "withdrawn", "running", "declined", "accepted"]
    for standing in [*(each.value for each in Standing), *others]:
        said = Similar("a", "cost", 0, "the same question", standing).became
        assert said.partition(" ")[0] in {"is", "was", "has"}
        assert said.endswith(standing)


def test_caps_of_all_and_of_one_are_named() -> None:
    places = [("month", ""), ("operator", ""), ("operator", f"spiffe://{'s' * 3}/operator/ana")]
    places += [("month", "2026-11"), ("purpose", "care"), ("purpose", "")]
    assert [budget_of(ScopedBudget(*place, 5, 0, 0)).name for place in places] == [
        "each month",
        "each operator",
        "operator ana of sss",
        "month 2026-11",
        "care",
        "each purpose",
    ]
    assert whose("operator spiffe://sss/operator/ana") == "operator ana of sss"


def test_an_entry_of_a_kind_that_nobody_described_is_still_listed() -> None:
    assert in_words(parsed([line(type="some-new-kind")])[0]).what == "Some new kind"


def test_what_has_no_price_is_not_called_a_charge() -> None:
    scored = line(type="charged", job="ab", kind="key", round=0, units=0)
    said = in_words(parsed([scored])[0])
    assert said.what.startswith("Noted, without a price")
    assert "Accepted" in in_words(parsed([line(type="admitted", job="ab", units=0)])[0]).what


def test_a_purge_says_of_what_and_prices_have_greek_letters() -> None:
    purged = line(type="purged", job="ab" * 32, kind="points", round=3, account="")
    said = in_words(parsed([purged])[0]).what
    assert said == "Stored bytes deleted, never sent again: blinded identifiers, round 3, job " + (
        "ab" * 6
    )
    assert symbols("at most epsilon 1 (rho 0.5)") == "at most ε\u00a01 (ρ\u00a00.5)"


@pytest.mark.parametrize(
    ("standing", "decides"),
    [
        *((each, True) for each in ("waiting", "held", "approved", "accepted", "running")),
        *((each, False) for each in ("ended", "refused", "declined", "withdrawn")),
    ],
)
def test_a_decision_is_asked_for_only_while_it_changes_something(
    standing: str, decides: bool
) -> None:
    assert replace(ALIGNS, standing=standing).can_be_decided is decides


def test_an_alignment_reads_as_its_own_epsilon_under_its_own_cap() -> None:
    """Its rho of 0.5 is no epsilon of 5.2 of the table, nor of 6.9 at its own delta."""
    said = " ".join(sentences_of(ALIGNS))
    assert "It would use your list of people together with 'q'" in said
    assert "at most epsilon 1 (rho 0.5), 50.0 % of the cap of alignments." in said
    assert "Left under the cap of alignments: epsilon 1.414 (rho 1); afterwards epsilon 1" in said
    # The month adds up rho of jobs and alignments, at the delta by which amounts are shown.
    assert f"under the cap of month 2026-11: {format_units(4 * RHO, left=True)}" in said


def test_what_has_no_price_is_not_said_to_be_within_a_cap() -> None:
    said = " ".join(sentences_of(replace(ALIGNS, kind="prediction", units=0)))
    assert "It has no price" in said
    assert "epsilon" not in said
    assert "cap of alignments" not in said


def test_a_grant_of_predictions_is_part_of_the_policy_in_sentences(tmp_path: Path) -> None:
    grant = """
[[predict]]
coordinator = "spiffe://study/coordinator/hub"
job = "%s"
receiver = "hospital"
purpose = "triage"
max_rows = 5000
until = 2030-12-31
approve = "ask"
peers = { hospital = "ed25519:%s", bank = "ed25519:%s" }
"""
    path = tmp_path / "policy.toml"
    path.write_text(grant % ("ab" * 32, "01" * 32, "02" * 32))
    found = " ".join(sentences(load_policy(path)))
    for words in ("abababababab", "hospital", "triage", "5,000 rows", "2030-12-31"):
        assert words in found
    assert "an approver agrees" in found
    assert "without differential privacy" in found


def test_lines_of_a_policy_that_changed_are_told_and_comments_are_not() -> None:
    old = "# a comment\n[[allow]]\nmax_rounds = 5\n"
    new = "[[allow]]\n# another\nmax_rounds = 9\n"
    assert changed_lines(old, new) == [("-", "max_rounds = 5"), ("+", "max_rounds = 9")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Federation:
    """Make a federation whose hospital asks its officers: two of them may decide, one is enough."""
    folder = tmp_path_factory.mktemp("officer")
    made = create_federation(folder, sites(names=NAMES), cap_units=units_down(5.0))
    home = made.folder / "hospital"
    for name in ("ann", "ben"):
        pem = home / f"{name}.pem"
        pem.write_bytes(private_pem(Ed25519PrivateKey.generate()))
        assert main(["ledger", "approvers", str(home / "ledger"), *approver(home, name)]) == 0
    policy = home / "policy.toml"
    text = policy.read_text("utf-8")
    assert text.count("[[allow]]") >= 1
    policy.write_text(text.replace("[[allow]]", '[[allow]]\napprove = "ask"', 1), "utf-8")
    return made


def private_pem(key: Ed25519PrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())


def approver(home: Path, name: str) -> list[str]:
    words = ["--add", str(home / f"{name}.pem"), "--reason", "decides"]
    return words if name == "ann" else [*words, "--approver-key", str(home / "ann.pem")]


@pytest.fixture(scope="module")
def federation(fork_server: None, made: Federation) -> Iterator[Processes]:
    with Processes(made, made.folder / "logs") as processes:
        with processes.client() as client:
            processes.wait_for_parties(client)
        yield processes


@contextmanager
def console(made: Federation, key: str | None) -> Iterator[str]:
    """Start the console as an officer does; yield the address that it prints."""
    config = made.folder / "hospital" / "party.toml"
    command = [sys.executable, "-m", "colonnade.cli.main", "party", "console", "--json"]
    command += ["--config", str(config)]
    command += ["--key", str(config.with_name(f"{key}.pem"))] if key else []
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    try:
        yield json.loads(started.stdout.readline())["link"]
    finally:
        started.terminate()
        assert started.wait(60) == 143
        started.stdout.close()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Browser]:
    with browser(tmp_path / "profile") as opened:
        yield opened


def until(page: Browser, condition: str) -> None:
    found = page.run(
        "new Promise(done => { let left = 900; const look = () => "
        f"({condition}) ? done(true) : left-- ? setTimeout(look, 100) : done(false); look(); }})"
    )
    assert found, page.run("document.body.textContent")


def decide(page: Browser, verdict: str, reason: str = "") -> None:
    page.run(
        f"document.querySelector('input[value={verdict}]').checked = true;"
        f"document.getElementById('reason').value = {json.dumps(reason)};"
    )
    page.follow("document.querySelector('form.decide').requestSubmit()")


def ask(client: Client, name: str) -> str:
    return client.submit(
        JobOptions(epsilon=0.3), target="y", name=name, purpose="readmission study", again=True
    )


def widths_fit(page: Browser, address: str) -> None:
    for width in (390, 1280):
        page.open(address, width=width)
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.run(overflow) == 0, width
    if axe := os.environ.get("COLONNADE_AXE"):
        page.run(Path(axe).read_text("utf-8") + "; 1")
        assert page.run("axe.run().then(all => all.violations.map(each => each.id))") == []


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_an_officer_reads_holds_and_approves_and_the_job_runs(
    federation: Processes, made: Federation, page: Browser
) -> None:
    with console(made, "ann") as link, federation.client() as client:
        page.open(link)
        assert page.run("document.getElementById('h1').textContent") == "Nothing waits for you."
        job = ask(client, HOSTILE)
        # The page notices by itself that somebody has to decide.
        until(page, "document.querySelector('#queue a.btn') !== null")
        assert page.run("document.hacked === undefined") is True
        origin = link.partition("/enter")[0]
        widths_fit(page, f"{origin}/")
        widths_fit(page, f"{origin}/jobs/{job}")
        assert "readmission study" in page.run("document.querySelector('main').textContent")
        decide(page, "hold", "is x1 needed?")
        assert client.show(job).view.state == "proposed"
        assert "awaiting_approval" not in {each.code for each in client.coordinator().errors}
        decide(page, "approve")
        client.wait(job)
        page.open(f"{origin}/")
        left = page.run("document.querySelectorAll('#sent tbody tr').length")
        assert left >= 2
        page.open(f"{origin}/jobs/{job}")  # nothing is left to decide, and no hold stands
        assert page.run("document.querySelector('form.decide')") is None
        assert "is x1 needed" not in page.run("document.querySelector('main').textContent")
        assert page.errors == []
    found = read_snapshot(load_config(made.folder / "hospital" / "party.toml").ledger)
    verdicts = [each.verdict for each in found.state.docket.decisions[job]]
    assert verdicts == ["hold", "approve"]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("how", ["session", "console"])
def test_a_page_that_is_no_longer_followed_says_so(
    made: Federation, page: Browser, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = "document.getElementById('stale').hidden === false"
    with console(made, None) as link:
        page.open(link)
        until(page, "events.readyState === EventSource.OPEN")
        assert page.run(shown) is False
        if how == "session":
            page.run("fetch('leave', {method: 'POST'}).then(answer => answer.status)")
            until(page, shown)
            page.open(f"{link.partition('/enter')[0]}/")  # and what comes next says what to do
            assert "colonnade party console" in page.run("document.body.textContent")
    if how == "console":
        until(page, shown)
    assert "Traceback" not in capfd.readouterr().err  # of the stream that was open


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_two_officers_at_once_and_one_without_a_key(
    federation: Processes, made: Federation, page: Browser, tmp_path: Path
) -> None:
    with (
        console(made, "ann") as ann,
        console(made, "ben") as ben,
        console(made, None) as nobody,
        browser(tmp_path / "other") as other,
        federation.client() as client,
    ):
        job = ask(client, "premium")
        for opened, link in ((page, ann), (other, ben)):
            opened.open(link)
            until(opened, "document.querySelector('#queue a.btn') !== null")
            opened.open(f"{link.partition('/enter')[0]}/jobs/{job}")
        decide(page, "refuse", "pricing is no agreed purpose")
        decide(other, "approve")  # read before the refusal
        assert "somebody else decided" in other.run("document.querySelector('main').textContent")
        other.open(nobody)
        other.open(f"{nobody.partition('/enter')[0]}/jobs/{job}")
        assert other.run("document.querySelector('main form') === null") is True
        until(page, "true")
        ended = [view.state for view in client.watch(job)][-1]
    assert ended == "failed"
    found = read_snapshot(load_config(made.folder / "hospital" / "party.toml").ledger)
    assert [each.verdict for each in found.state.docket.decisions[job]] == ["refuse"]


def test_a_policy_is_read_out_in_sentences(made: Federation) -> None:
    said = sentences(load_policy(made.folder / "hospital" / "policy.toml"))
    assert "wait until an approver agrees" in said[0]
    said = sentences(load_policy(made.folder / "laboratory" / "policy.toml"))
    assert "pass without asking" in said[0]


def test_the_policy_in_use_is_read_out_whatever_became_of_its_file(tmp_path: Path) -> None:
    made = create_federation(tmp_path / "fed", sites(names=NAMES), cap_units=units_down(5.0))
    config = load_config(made.folder / "hospital" / "party.toml")
    text = config.policy.read_text("utf-8")
    with closing(open_ledger(config.ledger)) as ledger:
        ledger.decisions.note_policy(text.encode(), approvals=0)
    page = OfficerConsole(config, Door("127.0.0.1:1"))._page
    assert "pass without asking" in page()
    assert "differs" not in page()
    # What is not in use yet is shown as a difference, not as what is agreed to.
    config.policy.write_text(text.replace("[[allow]]", '[[allow]]\napprove = "ask"', 1), "utf-8")
    assert "The file differs from the policy in use" in page()
    assert "pass without asking" in page()
    assert "wait until" not in page()
    config.policy.write_text(f"{text}\nbroken = = 1\n", "utf-8")
    assert "The file cannot be used" in page()
    assert "pass without asking" in page()
    config.policy.unlink()
    assert "The file cannot be used" in page()
