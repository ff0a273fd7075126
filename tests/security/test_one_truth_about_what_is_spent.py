"""Bounds, job and their total cost the same wherever it is told: terminal, files, ledger."""

import dataclasses
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.desk import CAP, UNITS, Desk, job_of
from support.hosts import HUB, PARTY, a_ledger, ingest_rows, vault_on

from colonnade.cli.main import main
from colonnade.client import JobOptions, PartyOffer
from colonnade.client.builder import build_job
from colonnade.client.description import describe
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.ledger.create import open_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.bounds import QuantilePlan
from colonnade.methods.bounds_budget import MAX_SHARE, USUAL_SHARE, BoundsBudget
from colonnade.methods.problem import Loss
from colonnade.party.data.bounding.bounds import buy_bounds
from colonnade.party.data.dataset import open_dataset
from colonnade.party.policy import Allowance
from colonnade.privacy.accounting import (
    MAX_UNITS,
    RHO_UNIT,
    epsilon_of,
    format_upper_bound,
    rho_of,
    rounded,
    units_down,
)
from colonnade.privacy.simulation import ZeroNoise
from colonnade.report.text import epsilon_up
from colonnade.server.engine.offers import check_offer
from colonnade.server.engine.progress import find_job, run_of
from colonnade.server.results import report_of
from colonnade.simulate.command import _lines
from colonnade.simulate.run import bounded_columns
from colonnade.simulate.sites import Site, SiteColumn

Output = pytest.CaptureFixture[str]


class Page(HTMLParser):
    """The exact numbers and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.values: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        exact = found.get("value") if tag == "data" else found.get("data-value")
        self.values.add(exact or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def simulate(capsys: Output, folder: Path, *options: str) -> tuple[dict[str, Any], str]:
    folders = ("--out", str(folder / "run"), "--keep", str(folder / "kept"))
    assert main(["simulate", "--json", *folders, *options]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result, (folder / "run" / "report.html").read_text()


def told_twice(amounts: dict[str, Any], spend: dict[str, Any]) -> None:
    """Check the amounts of ``--json`` against those of a report, and these against each other."""
    for ours, most, spent in (
        (amounts, spend["total"]["max"], spend["total"]["spent"]),
        (amounts["bounds"], spend["bounds"], spend["bounds"]),
        (amounts["job"], spend["max"], spend["spent"]),
    ):
        assert (ours["rho"], ours["epsilon"]) == (most["rho"], most["epsilon"])
        assert (ours["spent"], ours["spent_epsilon"]) == (spent["rho"], spent["epsilon"])
    for kind in ("max", "spent"):
        parts = spend["bounds"]["units"] + spend[kind]["units"]
        assert spend["total"][kind]["units"] == parts


@pytest.mark.slow
@pytest.mark.usefixtures("fork_server")
@pytest.mark.parametrize("method", ["moments", "frank-wolfe"])
@pytest.mark.parametrize("share", ["0", "0.3"])
def test_terminal_json_report_page_and_ledger_say_the_same(
    capsys: Output, tmp_path: Path, method: str, share: str
) -> None:
    size = ("--rows", "3000", "--features", "6", "--parties", "2", "--informative", "2")
    options = (*size, "--epsilon", "4", "--method", method, "--bounds-share", share)
    result, text = simulate(capsys, tmp_path, *options)
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    privacy, told = report["privacy"], result["privacy"]
    page = Page(text)
    told_twice(told["joint"], privacy["joint"])
    assert 3.9 < told["joint"]["epsilon"] <= 4.0  # what was asked for covers bounds and job
    for ours, theirs in zip(told["parties"], privacy["parties"], strict=True):
        assert ours["party"] == theirs["party"]
        told_twice(ours, theirs)
        ledger = open_ledger(LedgerFiles(tmp_path / "kept" / ours["party"] / "ledger"))
        charges = ledger.state.charges
        paid = sum(each.units for key, each in charges.items() if key.kind == "bounds")
        budget = ledger.budget()
        ledger.close()
        assert bool(paid) == (share != "0")
        assert theirs["bounds"]["units"] == paid
        assert theirs["total"]["spent"]["units"] == budget.spent
        assert theirs["ledger_spent"]["units"] == budget.spent
        assert theirs["total"]["max"]["units"] == theirs["cap"]["units"] == budget.cap
    for spend in (privacy["joint"], *privacy["parties"]):
        amounts = (spend["bounds"], spend["max"], spend["spent"], *spend["total"].values())
        assert {repr(each["epsilon"]) for each in amounts} <= page.values
        assert {repr(each["rho"]) for each in amounts} <= page.values
    (table,) = re.findall('<table id="amounts".*?</table>', text, re.DOTALL)
    whose = [*[(each["party"], each) for each in privacy["parties"]]]
    whose.append(("one person, jointly", privacy["joint"]))
    for who, spend in whose:
        for what, told_amount in (
            ("job's maximum", spend["max"]),
            ("spent in this job", spend["spent"]),
            ("paid for bounds", spend["bounds"]),
            ("total: bounds and job's maximum", spend["total"]["max"]),
            ("total: spent on bounds and job", spend["total"]["spent"]),
        ):
            first, second = (
                re.escape(html.escape(each).replace("&#x27;", "&#39;")) for each in (who, what)
            )
            pattern = f"<bdi>{first}</bdi></th><td[^>]*><bdi>{second}</bdi></td>(.*?)</tr>"
            (row,) = re.findall(pattern, table)
            exact = [repr(told_amount[kind]) for kind in ("units", "rho", "epsilon")]
            assert re.findall('data-value="(.*?)"', row) == exact
    # A person reads the total first, and both parts of it.
    lines = "\n".join(_lines(result))
    assert f"joint epsilon {format_upper_bound(told['joint']['epsilon'])} (rho " in lines
    assert (
        f"epsilon at most {format_upper_bound(told['joint']['epsilon'])} for a person" in page.text
    )
    tile = f"{epsilon_up(told['joint']['epsilon'])} at most"
    assert tile in page.text
    for each in told["parties"]:
        assert epsilon_up(each["epsilon"]) in page.text
    for each in (told["joint"], *told["parties"]):
        for part in ("bounds", "job") if share != "0" else ():
            epsilon, rho = format_upper_bound(each[part]["epsilon"]), each[part]["rho"]
            assert f"{part} epsilon {epsilon} (rho {rounded(rho)})" in lines
    assert told["bounds_note"] == privacy["bounds_note"]
    assert told["bounds_note"] in lines
    assert told["bounds_note"] in page.text


@pytest.mark.slow
@pytest.mark.usefixtures("fork_server")
def test_too_few_rows_for_bounds_use_the_declared_ones_and_say_so(
    capsys: Output, tmp_path: Path
) -> None:
    data = tmp_path / "people.csv"
    rows = [f"{i % 17},{i % 5},{i % 17 + 0.1 * (i % 3)}" for i in range(120)]
    data.write_text("\n".join(["a,b,y", *rows]) + "\n")
    source = ("--data", str(data), "--target", "y", "--parties", "2")
    result, text = simulate(capsys, tmp_path, *source)
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    note = result["privacy"]["bounds_note"]
    assert note.startswith("declared bounds are used: tighter ones of 2 columns and 96 rows would")
    assert len(note.splitlines()) == 1
    assert report["privacy"]["bounds_note"] == note
    assert note in Page(text).text
    assert note in "\n".join(_lines(result))
    assert result["privacy"]["joint"]["bounds"]["rho"] == 0.0
    assert 0.9 < result["privacy"]["joint"]["job"]["epsilon"] <= 1.0  # all of it is the job's
    for party in ("hospital", "laboratory"):
        ledger = open_ledger(LedgerFiles(tmp_path / "kept" / party / "ledger"))
        assert not [key for key in ledger.state.charges if key.kind == "bounds"]
        ledger.close()


def budget(units: int, share: float | None, n_rows: int = 10_000) -> BoundsBudget:
    return BoundsBudget.of({"a": 4, "b": 9}, n_rows=n_rows, units=units, share=share)


def test_bounds_are_bought_where_a_public_rule_says_that_they_pay() -> None:
    least = QuantilePlan(9, 10_000).least_units
    for part, taken in ((0.01, USUAL_SHARE), (0.3, 0.3), (MAX_SHARE - 0.01, MAX_SHARE - 0.01)):
        units = int(2 * least / part)
        found = budget(units, None)
        # Prices are rounded down to whole variances of the noise: within a thousandth.
        assert sum(found.prices.values()) == pytest.approx(taken * units, rel=1e-3)
        assert sum(found.prices.values()) <= found.set_aside <= units
        assert found.prices["b"] >= least  # or they would be refused as lost in noise
    for part in (MAX_SHARE + 0.01, 3.0, 500.0):
        found = budget(int(2 * least / part), None)
        assert (dict(found.prices), found.set_aside) == ({}, 0)
        assert "declared bounds are used: " in found.note


def test_a_share_that_was_asked_for_is_never_exceeded() -> None:
    least = QuantilePlan(9, 10_000).least_units
    units = int(2 * least / 0.2)
    assert not budget(units, 0.19).prices
    assert "would take 20 % of the budget, more than 19 % of it" in budget(units, 0.19).note
    assert sum(budget(units, 0.8).prices.values()) == pytest.approx(0.8 * units, rel=1e-3)
    assert not budget(units, 0.0).prices


def test_bounds_of_a_class_are_not_bought() -> None:
    column = SiteColumn("a", Bounds(0.0, 1.0), [])  # type: ignore[arg-type]
    sites = [Site("a", [column] * 3, column), Site("b", [column] * 2, None)]
    assert bounded_columns(sites, Loss.LOGISTIC) == {"a": 3, "b": 2}
    assert bounded_columns(sites, Loss.SQUARED) == {"a": 4, "b": 2}


def test_a_plan_splits_its_total_too(capsys: Output) -> None:
    options = ("--rows", "20000", "--features", "9", "--quick", "--json")
    assert main(["plan", *options, "--bounds-share", "0.2"]) == 0
    plan = json.loads(capsys.readouterr().out)["privacy"]
    joint = plan["joint"]
    assert 0.99 < joint["epsilon"] <= 1.0
    for each in (joint, *plan["parties"].values()):
        assert each["bounds"]["rho"] + each["job"]["rho"] == pytest.approx(each["rho"], rel=1e-12)
        for part in (each, each["bounds"], each["job"]):
            assert part["epsilon"] == epsilon_of(part["rho"], plan["delta"])
    assert joint["bounds"]["rho"] == pytest.approx(0.2 * rho_of(1.0, plan["delta"]), rel=1e-3)


def test_a_party_tells_what_it_paid_for_bounds_of_columns_that_it_offers(tmp_path: Path) -> None:
    ingest_rows(tmp_path / "data")
    ledger = a_ledger()
    with open_dataset(tmp_path / "data") as dataset:
        gate = Gate(ledger, ZeroNoise())
        for name in ("a", "b"):
            buy_bounds(dataset, ledger, gate, units=units_down(2.0), columns=[name])
        prices: dict[str, int] = {}
        for key, charge in ledger.state.charges.items():
            prices[key.job[-1]] = prices.get(key.job[-1], 0) + charge.units
        for names, paid in ((("a",), prices["0"]), (("b",), prices["1"]), (("*",), None)):
            allowed = Allowance(HUB, ("moments",), names, False, MAX_UNITS, 1000)
            offer = vault_on(dataset, ledger, allowed).hello().offer
            assert offer.bounds_units == (sum(prices.values()) if paid is None else paid) > 0
            check_offer(PARTY, offer)
        offer.bounds_units = offer.spent_units + 1
        with pytest.raises(BadInput, match="bounds"):
            check_offer(PARTY, offer)


def report_with(*paid: int | None) -> dict[str, Any]:
    """Run a job whose parties paid so much for bounds; None: and have another table by now."""
    desk = Desk("a", "b")
    name = desk.run(job_of("a", "b"))
    for party, units in zip(("a", "b"), paid, strict=True):
        hello = desk.sides[party].hello()
        hello.offer.spent_units = hello.offer.bounds_units = units or 0
        if units is None:
            hello.offer.dataset = "cd" * 16
        desk.attach(party, offer=hello.offer)
    run = run_of(desk.engine, desk.store, find_job(desk.engine, desk.store, name))
    report: dict[str, Any] = report_of(desk.engine, desk.store, run)
    desk.store.close()
    return report


def test_the_coordinators_report_adds_what_parties_paid_before() -> None:
    privacy = report_with(7 * UNITS, 0)["privacy"]
    (first, second), joint = privacy["parties"], privacy["joint"]
    assert first["bounds"]["units"] == joint["bounds"]["units"] == 7 * UNITS < CAP
    assert second["bounds"]["units"] == 0
    most = joint["max"]["units"] + 7 * UNITS
    assert joint["total"]["max"]["units"] == most
    assert joint["total"]["max"]["epsilon"] == epsilon_of(most / RHO_UNIT, privacy["delta"])
    shown = format_upper_bound(joint["total"]["max"]["epsilon"])
    assert f"with epsilon at most {shown} for a person" in privacy["statement"]
    assert "to buy bounds" in privacy["statement"]
    assert "bought before the job by a:" in privacy["bounds_note"]


def test_what_bounds_of_a_replaced_table_cost_is_not_guessed() -> None:
    privacy = report_with(7 * UNITS, None)["privacy"]
    first, second = privacy["parties"]
    assert first["total"]["max"]["units"] == first["max"]["units"] + 7 * UNITS
    for spend in (second, privacy["joint"]):
        assert (spend["bounds"], spend["total"]) == (None, None)
    assert "what bounds cost b for the job's table is not known" in privacy["bounds_note"]


def test_a_dry_run_adds_what_parties_paid_before() -> None:
    bounds, paid = Bounds(0.0, 1.0), units_down(0.001)
    offers = [
        PartyOffer(
            party=party,
            attached=True,
            dataset="ab" * 16,
            population=20_000,
            features={f"{party} x": bounds},
            fills={f"{party} x": 0.5},
            label=("y", bounds),
            cap_units=2**50,
            used_units=paid,
            bounds_units=paid,
        )
        for party in ("a", "b")
    ]
    job = build_job(offers, JobOptions(), target="y")
    told = describe(job, offers)
    assert told["joint_bounds_rho"] == 2 * paid / RHO_UNIT
    total = told["joint_max_rho"] + told["joint_bounds_rho"]
    assert told["joint_total_rho"] == pytest.approx(total, rel=1e-12)
    assert told["joint_total_epsilon"] == epsilon_of(told["joint_total_rho"], job.delta)
    assert told["parties"]["a"]["bounds_rho"] == paid / RHO_UNIT
    moved = [dataclasses.replace(offers[0], dataset="cd" * 16), offers[1]]
    assert describe(job, moved)["joint_total_rho"] is None
