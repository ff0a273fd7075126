"""The report: every number, everything escaped, the same bytes each time."""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.reports import HOSTILE, QUALITY, amount, make_moments, make_report

from colonnade.privacy.accounting import epsilon_of, format_upper_bound
from colonnade.report import read, state_promise, to_html, write_report
from colonnade.report.card import to_card
from colonnade.report.parts import Table
from colonnade.report.plots import HEIGHT, Scale, round_step, spread
from colonnade.report.terminal import result_lines, results_of
from colonnade.report.text import (
    abbreviated,
    at_most,
    epsilon_down,
    epsilon_up,
    odds,
    per_unit,
    percent_down,
    percent_up,
    short,
    size,
)
from colonnade.report.views.contributors import NOTHING_BETWEEN
from colonnade.report.views.model import model_section
from colonnade.report.views.quality import _calibration, accuracy_of


@functools.cache
def usual(*, rated: bool) -> str:
    """Return the page of a usual job, drawn once for all tests that only read it."""
    return to_html(make_report(quality=QUALITY if rated else None))


class Page(HTMLParser):
    """Read a page as a browser does, and check that its tags balance."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.values: set[str] = set()
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        if tag not in ("meta", "input"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & {*self._open}:
            self.text.append(data)

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "data-value" or (tag, name) == ("data", "value"):
                self.values.update((value or "").split())
            if name == "id":
                self.ids.append(value or "")

    def says(self, text: str) -> bool:
        return text in "".join(self.text).replace("\u00a0", " ")

    def count(self, key: str) -> int:
        """Return how many plots or tables have ids that end so."""
        return sum(each.endswith(key) for each in self.ids)


def leaves(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def numbers(value: object) -> Iterator[float]:
    return (
        each
        for each in leaves(value)
        if isinstance(each, int | float) and not isinstance(each, bool)
    )


def texts(value: object) -> Iterator[str]:
    return (each for each in leaves(value) if isinstance(each, str))


def test_every_number_and_text_of_the_report_is_on_the_page() -> None:
    report = make_report(quality=QUALITY)
    page = Page(usual(rated=True))
    shown = {key: value for key, value in report.items() if key not in ("format", "version")}
    model = {key: value for key, value in (report["model"] or {}).items() if key != "version"}
    shown.pop("rounds")  # in sentences
    shown.pop("n_rows")
    shown["quality"] = {key: value for key, value in QUALITY.items() if key != "n_rows"}
    missing = {n for n in numbers(shown | {"model": model}) if repr(n) not in page.values}
    assert missing == set()
    assert page.says("123,456 people")
    assert page.says("4,321 rows")
    assert page.says("rounds 5 of 5")
    model.pop("format")
    shown["quality"] = None  # "auc" is spelled out
    shown["state"] = "Finished"
    assert [text for text in texts(shown | {"model": model}) if not page.says(text)] == []


def test_what_is_read_is_what_is_meant() -> None:
    page = Page(usual(rated=False))
    assert page.says("Stay: the model uses all 12 columns; how good it is was not measured.")
    assert page.says("The promise in a sentence.")
    assert page.says("ε 1 at most")
    assert page.says("promised to a person at every party")
    assert page.says("δ = 1e-6")
    assert page.says("Whose releases depend on the label: all hold it.")
    assert page.says("can become at most about 74 : 26")
    assert not page.says("simulation only")
    assert not page.says("NOT PRIVATE")


def test_costs_round_up_and_what_is_left_rounds_down() -> None:
    for value in (0.55641, 0.5564, 1.0, 0.9999999, 12.341, 3.3e-7, 0.1 + 0.2):
        assert value <= float(at_most(value)) + 1e-12 <= value * 1.0011
        assert value <= float(epsilon_up(value).split()[1]) + 1e-12
        assert value >= float(epsilon_down(value).split()[1])
    assert [at_most(value) for value in (1.0, 0.33, 0.33031, 0.0)] == ["1", "0.33", "0.3304", "0"]
    assert (epsilon_up(0.55613), epsilon_down(0.55696)) == ("ε\u00a00.5562", "ε\u00a00.5569")
    assert epsilon_up(1.0 + 2e-16) == "ε\u00a01"
    # As ledgers, the command line and consoles: one amount reads the same everywhere.
    for value in (0.55641, 1.0, 12.3456, 3.3e-7):
        assert epsilon_up(value) == f"ε\u00a0{format_upper_bound(value)}"
    assert (percent_up(0.04401), percent_down(0.5909)) == ("4.5\u00a0%", "59.0\u00a0%")
    assert odds(0.0) == "at most about 50 : 50"
    assert odds(0.557) == "at most about 64 : 36"
    assert odds(8.0) == "more than 99 : 1"
    privacy = make_report()["privacy"]
    privacy["joint"]["total"]["max"]["epsilon"] = 2.0001
    assert "epsilon at most 2.001 for a person" in state_promise(privacy)
    assert "hospital 0.5" in state_promise(privacy)


def test_a_simulation_is_marked_and_its_quality_too() -> None:
    page = Page(to_html(make_report(quality=QUALITY, private=False)))
    assert page.says("NOT PRIVATE")
    assert page.says("Not true of this run")
    assert page.says("Simulation only")
    assert {repr(QUALITY[key]) for key in ("ours", "central", "nonprivate")} <= page.values
    assert page.says("private, all data in one place")
    assert ("div", "role", "alert") in page.attributes


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_job_that_ended_early_gives_its_reason_and_the_model_so_far(state: str) -> None:
    page = Page(to_html(make_report(done=2, state=state, reason="a party withdrew")))
    assert page.says(f"Stay: the job {state} after 2 of 5 rounds.")
    assert page.says(f"{state.capitalize()}: a party withdrew")
    assert page.says("the model so far, after 2 of 5 rounds")
    assert page.says("What was spent stays spent")
    ended = make_report(done=0, state=state, reason="a party withdrew", ended_at=None)
    page = Page(to_html(ended))
    assert page.says("There is no model")
    assert page.says("Nothing left the parties.")
    assert page.count("-plot") == 0
    assert "privacy-table" in page.ids  # the maximum and the caps are still drawn


def test_a_finished_job_has_all_its_plots_and_nothing_from_elsewhere() -> None:
    text = usual(rated=True)
    page = Page(text)
    assert {"path-plot", "quality-plot"} <= {*page.ids}
    assert {"contribution", "coefficients", "privacy-table", "uplink"} <= {*page.ids}
    assert {"link", "img", "iframe", "object", "image"} & {*page.tags} == set()
    assert page.tags.count("script") == page.tags.count("style") == 1
    fetched = [a for a in page.attributes if a[1] in ("src", "href", "xlink:href", "action")]
    assert [value for _, _, value in fetched if not value.startswith("#")] == []
    assert len(page.ids) == len({*page.ids})
    assert {value[1:] for _, _, value in fetched} <= {*page.ids}
    assert not [name for _, name, _ in page.attributes if name == "style" or name.startswith("on")]
    assert "@import" not in text
    assert "url(" not in text.replace("url(#hatch)", "")
    assert "://" not in text.replace('"http://www.w3.org/2000/svg"', "")


def test_every_plot_and_table_can_be_downloaded() -> None:
    report = make_report(method="moments", moments=make_moments(), quality=QUALITY)
    page = Page(to_html(report))
    offered = {name: {v for _, n, v in page.attributes if n == name} for name in BUTTONS}
    tables = {value for tag, name, value in page.attributes if (tag, name) == ("table", "id")}
    assert offered["data-csv"] == tables
    assert offered["data-svg"] == {each for each in page.ids if each.endswith("-plot")}
    assert offered["data-strips"] <= tables


BUTTONS = ("data-csv", "data-svg", "data-strips")


def test_a_moments_job_shows_what_else_its_releases_tell() -> None:
    moments = make_moments()
    page = Page(to_html(make_report(method="moments", moments=moments)))
    assert {"correlations-plot", "l1-path-plot"} <= {*page.ids}
    for found in (moments["intervals"], moments["explained"]):
        assert {repr(number) for number in numbers(found)} - {"0.95"} <= page.values
    assert page.says("at no further cost")
    # 1.96 errors of 0.0613 are 0.12: every plus-minus is a 95 % interval.
    assert page.says("R² 0.73 ± 0.12 (95 %)")
    assert page.says("the model explains 61 to 85 % of the differences between people.")
    assert page.says("95 % interval")
    assert not Page(usual(rated=False)).says("More from the same releases")


def test_aligned_tables_show_whom_two_organizations_have_in_common() -> None:
    overlap = [{"parties": ["hospital", "laboratory"], "people": 9035}]
    moments = make_moments(overlap=overlap)
    report = make_report(method="moments", moments=moments, parameters={"presence": True})
    page = Page(to_html(report))
    assert "9035" in page.values
    assert page.says("hospital and laboratory")
    # An alignment hides how many people there are: some rows are nobody's.
    assert not page.says(f"{report['n_rows']:,d} people")
    assert "overlap" not in Page(to_html(make_report(method="moments", moments=make_moments()))).ids


def test_what_a_job_took_of_a_budget_has_the_bounds_in_it_that_its_epsilon_has() -> None:
    report = make_report(bounds=10**12)
    for party in report["privacy"]["parties"]:
        party["cap"] = amount(10 * party["total"]["spent"]["units"])
    assert Page(to_html(report)).says("It took 10.0 % of each organization's budget")


def test_what_a_job_took_of_a_budget_has_its_evaluation_in_it() -> None:
    report = make_report()
    for party in report["privacy"]["parties"]:
        party["cap"] = amount(10 * party["total"]["spent"]["units"])
    paid = report["privacy"]["parties"][-1]
    spent = amount(4 * paid["total"]["spent"]["units"])
    evaluation = {"metric": "r2", "value": 0.5, "error": 0.1, "epsilon": 0.1, "spent": spent}
    page = Page(to_html(report | {"evaluation": evaluation | {"party": paid["party"]}}))
    assert page.says("It took 10.0 % to 50.0 % of each organization's budget")


def test_a_sealed_job_is_not_described_as_a_sketched_one() -> None:
    releases = [
        {"party": "hospital", "kind": f"reply.{place}", "promise": "", "holds": "x", "rho": 0.1}
        for place in (1, 2)
    ]
    sealed = {"experimental": True, "promise": "", "parties": [], "buckets": 1, "shields": {}}
    sealed |= {"max_key_bits": 1, "opened_bits": {}, "releases": releases}
    report = make_report(labels="sketched", sealed=sealed)
    for row, each in zip(report["uplink"]["rows"], ("reply.1", "reply.2"), strict=False):
        row["kind"] = each
    page = Page(to_html(report))
    assert not page.says("noisy sketch")
    assert page.says("one party holds the label; products with it")
    assert not page.says("sealed products, sealed products")
    place = page.attributes.index(("table", "id", "sealed"))
    assert page.attributes[place + 1] == ("table", "class", "stack")  # on a phone


def test_effects_clear_of_zero_are_told_from_others() -> None:
    moments = make_moments()
    coef, found = moments["intervals"]["coef"], moments["intervals"]
    found["low"] = [each - 0.1 for each in coef]
    found["high"] = [each + 0.1 for each in coef]
    clear = sum(abs(each) > 0.1 for each in coef)
    page = Page(to_html(make_report(method="moments", moments=moments)))
    assert 0 < clear < 12
    hidden = [value for _, name, value in page.attributes if name == "data-clear"]
    assert len(hidden) == 12 - clear
    assert page.says(f"Show the {12 - clear} that cannot be told from zero")


def test_intervals_and_accuracy_are_left_out_with_their_reason() -> None:
    nothing = make_moments(intervals=None, explained=None, left_out=7)
    page = Page(to_html(make_report(method="moments", moments=nothing)))
    assert page.says("There are no intervals and no accuracy")
    assert page.says("not bought")
    assert page.says("7 columns that have less to do with the label")
    vague = make_report(
        method="moments",
        moments=make_moments(explained={"share": 0.9, "error": 0.3}),
        quality=QUALITY,
    )
    page = Page(to_html(vague))
    assert accuracy_of(read(vague)) is None
    assert page.says("say too little to tell")
    assert not page.says("0.90 ±")


def test_evaluation_and_contribution_appear_when_they_are_known() -> None:
    plain = Page(to_html(make_report()))
    assert not plain.says("alone explains")
    assert not plain.says("kept out of the fit")
    groups = [
        {"predicted": 2.0 + place, "observed": 2.1 + place, "error": 0.05} for place in range(10)
    ]
    report = make_report(
        evaluation={
            "metric": "r2",
            "value": 0.781,
            "error": 0.012,
            "epsilon": 0.1,
            "party": "insurer",
            "n_rows": 10_000,
            "calibration": groups,
        },
        contribution={
            "hospital": {"alone": 0.34, "without": 0.54, "alone_error": 0.046},
            "laboratory": {"alone": 0.27, "without": 0.61},
            "insurer": {"alone": 0.28, "without": 0.56},
        },
    )
    asked = {"purpose": "a pilot", "requested_by": "spiffe://study/operator/ana"}
    page = Page(to_html(report | asked))
    assert page.says("asked by ana")
    assert page.says("a pilot")
    assert page.says("The evaluation cost ε 0.1 besides")
    assert page.says("Stay: the model explains 78 % of the differences between people.")
    assert page.says("measured on about 10,000 people kept out")
    assert page.says("0.781 ± 0.024 (95 %)")
    assert "calibration-plot" in page.ids
    assert page.says("34 % ± 9")
    assert page.says("24 points")


def test_an_evaluation_that_noise_hides_is_not_read_as_a_result() -> None:
    groups = [{"predicted": 3.0, "observed": 5.0, "error": 1.0}]
    groups.append({"predicted": 9.0, "observed": -900.0, "error": 400.0})  # labels are 0 to 30
    evaluation = {"metric": "r2", "value": 0.2, "error": 0.9, "epsilon": 0.1, "n_rows": 600}
    page = Page(to_html(make_report(evaluation=evaluation | {"calibration": groups})))
    assert page.says("noise hides how good it is")
    assert page.says("Unclear")
    assert not page.says("explains 20")
    assert not page.says("-900")
    clear = make_report(evaluation=evaluation | {"value": -0.2, "error": 0.05})
    assert Page(to_html(clear)).says("the model explains no more than the mean does")


def test_one_figure_says_what_a_job_and_its_evaluation_cost_together() -> None:
    report = make_report(bounds=10**12)
    spent = amount(4 * 10**12)
    evaluation = {"metric": "r2", "value": 0.5, "error": 0.1, "epsilon": 0.1, "party": "insurer"}
    page = Page(to_html(report | {"evaluation": evaluation | {"spent": spent}}))
    joint = report["privacy"]["joint"]
    whole = amount(joint["total"]["max"]["units"] + spent["units"])
    done = amount(joint["total"]["spent"]["units"] + spent["units"])
    assert page.says(f"{epsilon_up(whole['epsilon'])} at most".replace("\u00a0", " "))
    assert page.says(f"evaluation included ({epsilon_up(spent['epsilon'])})".replace("\u00a0", " "))
    assert page.says(f"every party is at most {at_most(whole['epsilon'])}, under the same premises")
    assert {repr(each["epsilon"]) for each in (spent, whole, done)} <= page.values
    assert page.says("one person, evaluation included")
    assert page.says("with exact noise for the fit")  # the evaluation's are not here
    assert page.says("Its evaluation had jobs of its own")
    alone = Page(to_html(report))
    assert not alone.says("with exact noise for the fit")
    assert not alone.says("Its evaluation had jobs of its own")
    assert f"epsilon at most {at_most(whole['epsilon'])}" not in report["privacy"]["statement"]
    card = to_card(report | {"evaluation": evaluation | {"spent": spent}})
    assert f"every party is at most {at_most(whole['epsilon'])}, under the same premises" in card
    # Zero-concentrated amounts add up; an epsilon of the sum is not the sum of the epsilons.
    assert whole["epsilon"] == epsilon_of(whole["rho"], report["privacy"]["delta"])
    assert whole["epsilon"] < joint["total"]["max"]["epsilon"] + spent["epsilon"]
    # The report of the evaluation itself has one amount already.
    own = Page(to_html(report | {"evaluation": evaluation}))
    assert not own.says("evaluation included")


def test_a_coefficient_in_a_columns_unit_has_no_exponent() -> None:
    assert [per_unit(each) for each in (-2.0213e-5, 3.2e9, 0.0)] == [
        "−0.0000202",
        "+3,200,000,000",
        "0",
    ]
    report = make_report()
    report["model"]["features"][0] |= {"coef": -2.0213e-5, "coef_scaled": -0.4}
    page = Page(to_html(report))
    assert page.says("−0.0000202")


def test_columns_that_the_list_leaves_out_are_counted_beside_it() -> None:
    report = make_report()
    features = [
        {"party": f["party"], "name": f["name"], "deviation": 1.0, "coef": f["coef"]}
        for f in report["model"]["features"]
    ]
    used = [place for place, f in enumerate(report["model"]["features"]) if f["coef_scaled"]]
    for place in used[:2]:
        features[place] |= {"deviation": None, "coef": None}
    page = Page(to_html(report | {"per_deviation": {"features": features}}))
    shown = len(used) - 2
    assert page.says(f"The list shows the {shown} whose sizes compare; noise hides how much")
    assert page.says("the 2 whose deviation noise hides")


def test_intervals_of_what_is_unclear_leave_room_for_what_is_clear() -> None:
    moments = make_moments()
    found = moments["intervals"]
    found["low"] = [each - 0.05 for each in found["coef"]]
    found["high"] = [each + 0.05 for each in found["coef"]]
    clear = [abs(each) > 0.05 for each in found["coef"]]
    assert any(clear)
    assert not all(clear)
    near = Page(to_html(make_report(method="moments", moments=moments)))
    assert not near.says("goes on beyond it")
    hidden = clear.index(False)
    found["low"][hidden], found["high"][hidden] = -900.0, 900.0
    made = make_report(method="moments", moments=moments)
    assert Page(to_html(made)).says("goes on beyond it")
    table = next(
        each
        for each in model_section(read(made)).blocks
        if isinstance(each, Table) and each.key == "coefficients"
    )
    ticks = next(each.ticks for each in table.columns if each.plot)
    assert abs(float(ticks[-1][1])) < 2.0 * max(map(abs, found["coef"]))


def test_the_area_of_a_partys_columns_has_its_error() -> None:
    found = {"alone": 0.34, "without": 0.5, "alone_auc": 0.7, "alone_auc_error": 0.05}
    contribution = dict.fromkeys(("hospital", "laboratory", "insurer"), found)
    assert Page(to_html(make_report(contribution=contribution))).says("0.700 ± 0.10")


def test_what_nobody_knows_between_parties_is_said_and_not_guessed() -> None:
    alone = {"alone": 0.34, "alone_error": 0.046, "without": None}
    report = make_report(contribution=dict.fromkeys(("hospital", "laboratory", "insurer"), alone))
    page = Page(to_html(report))
    assert page.says("34 % ± 9")
    assert page.says(NOTHING_BETWEEN)
    lines = "\n".join(result_lines(results_of(report)))
    assert not page.says("lost without it")  # a column of dashes, on a phone a line each
    known = {"alone": 0.34, "without": 0.2, "lost": 0.14}
    one = report["contribution"] | {"insurer": known}
    assert Page(to_html(report | {"contribution": one})).says("lost without it")
    assert "alone 0.34 ± 0.09" in lines
    assert NOTHING_BETWEEN in lines
    assert "lost without it" not in lines


def test_the_calibration_of_classes_is_drawn_between_none_and_all() -> None:
    groups = [{"predicted": 0.1, "observed": 0.02, "error": 0.1}] * 2
    groups += [{"predicted": 0.8, "observed": 0.98, "error": 0.1}]
    evaluation = {"metric": "auc", "value": 0.73, "error": 0.02, "epsilon": 0.1, "n_rows": 900}
    made = make_report(evaluation=evaluation | {"calibration": groups})
    html = to_html(made)
    page = Page(html)
    assert page.says("of pairs ranked right (a coin ranks 50 %), measured on about 900 people")
    assert page.says("mean probability predicted")
    report = read(made)
    found = report.evaluation
    assert found is not None
    chart = _calibration(report, found)
    assert (chart.x_ticks[0], chart.x_ticks[-1]) == ((0.0, "0"), (100.0, "1"))
    assert all(0.0 <= p.low <= chart.height for p in chart.points)


def test_a_party_that_adds_nothing_is_named_above_all_figures() -> None:
    unused = {"party": "laboratory", "spent": amount(5), "note": "the model uses no feature of it"}
    report = make_report(unused=[unused])
    for feature in report["model"]["features"]:
        if feature["party"] == "laboratory":
            feature |= {"coef": 0.0, "coef_scaled": 0.0}
    text = to_html(report)
    assert text.index("The columns of laboratory add nothing") < text.index('class="figure')
    page = Page(text)
    assert page.says("2 of 3")
    assert page.says("No column of laboratory has a coefficient")


@pytest.mark.parametrize(("n_parties", "n_features"), [(1, 1), (2, 3), (10, 12)])
def test_moments_are_drawn_for_any_size_and_name(n_parties: int, n_features: int) -> None:
    parties = [HOSTILE, *(f"party {place}" for place in range(1, n_parties))]
    moments = make_moments(parties, n_features, feature=HOSTILE)
    page = Page(to_html(make_report(parties=parties, n_features=n_features, moments=moments)))
    assert {"correlations-plot", "l1-path-plot"} <= {*page.ids}
    assert page.tags.count("script") == 1
    assert len(page.ids) == len({*page.ids})


ATTACKS = (
    HOSTILE,
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onfocus='alert(1)' x='",
    "{{ 7 * 7 }}{% raw %}",
    '=HYPERLINK("x")',
    "\u202egnp.exe\u2066",
    "javascript:alert(1)",
)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_names_stay_text(attack: str) -> None:
    who = [attack, "_b", "<i>"]
    report = make_report(
        parties=who,
        name=attack,
        feature=attack,
        reason=attack,
        method=attack,
        quality=QUALITY | {"central_is": attack, "nonprivate_is": attack},
        moments=make_moments(who, feature=attack),
        labels=attack,
    )
    report["parameters"] = {attack: attack}
    report["model"]["label"]["name"] = attack
    report["privacy"]["statement"] = report["privacy"]["label"]["who"] = attack
    report["unused"] = [{"party": attack, "spent": amount(5), "note": attack}]
    for row in report["uplink"]["rows"]:
        row["kind"] = attack
    text = to_html(report)
    page, plain = Page(text), Page(to_html(make_report(moments=make_moments(), quality=QUALITY)))
    assert {*page.tags} <= {*plain.tags}
    assert page.tags.count("script") == page.tags.count("style") == 1
    assert {name for _, name, _ in page.attributes} <= {name for _, name, _ in plain.attributes}
    assert not {char for char in text if char in "\u202e\u2066\x00\x1b"}
    assert "".join(page.text).count(re.sub("[\x00\x1b\ud800\u202e\u2066]", "\ufffd", attack)) > 20
    text.encode("utf-8")


def test_a_value_that_is_missing_is_an_error() -> None:
    from jinja2 import UndefinedError

    from colonnade.report.render import _environment

    with pytest.raises(UndefinedError):
        _environment().from_string("{{ missing }}").render()
    assert _environment().from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"


def test_numbers_are_short_and_sizes_have_units() -> None:
    assert [short(1e-6), short(-0.0), short(1234567), short(0.123456), short(1.5e12)] == [
        "1e-6",
        "0",
        "1,234,567",
        "0.1235",
        "1.5e12",
    ]
    assert [short(1000.4, 3), short(999.4, 3)] == ["1,000", "999"]
    assert [size(0), size(999), size(12_345), size(1_234_567), size(5 * 10**9)] == [
        "0 B",
        "999 B",
        "12.3 kB",
        "1.23 MB",
        "5 GB",
    ]
    assert abbreviated("a name that is far too long", 16) == "a name tha… long"


@pytest.mark.parametrize(
    ("n_parties", "n_features", "rounds"), [(1, 1, 1), (16, 3, 2), (2, 120, 90)]
)
def test_extremes_are_drawn(n_parties: int, n_features: int, rounds: int) -> None:
    parties = [f"party-{number:02d}" for number in range(n_parties)]
    report = make_report(parties=parties, n_features=n_features, rounds=rounds)
    page = Page(to_html(report))
    assert ("path-plot" in page.ids) == (rounds > 1)
    if n_features == 120:
        used = sum(1 for f in report["model"]["features"] if f["coef_scaled"])
        assert page.says(f"{used - 40:,d} smaller ones are not drawn.")
    if n_parties == 16:  # six colours, then grey with the name
        shapes = {value for _, name, value in page.attributes if name == "class"}
        assert {f"party p{number}" for number in range(7)} <= shapes
        assert "party p7" not in shapes


def test_names_at_the_ends_of_curves_keep_apart_and_in_order() -> None:
    ends = [100.0, 102.0, 100.0, 200.0, 229.0, 5.0, 0.0]
    moved = spread(ends)
    ordered = sorted(moved)
    assert min(b - a for a, b in pairwise(ordered)) >= 15.9
    assert min(ordered) >= 0.0
    assert max(ordered) <= HEIGHT
    assert moved[5] > moved[6]
    assert moved[4] > moved[3]
    assert moved[3] == 200.0
    many = spread([float(HEIGHT)] * 40)
    assert min(many) >= -1e-9


def test_ticks_are_round_and_within_the_scale() -> None:
    assert [round_step(each) for each in (0.11, 0.2, 3.0, 700.0)] == [0.2, 0.2, 5.0, 1000.0]
    for low, high in ((0.0, 1.0), (-0.37, 2.4), (1e3, 1.2e3), (-1e-6, 0.0)):
        ticks = Scale(low, high).ticks(5)
        assert 2 <= len(ticks) <= 6
        assert all(low - 1e-12 <= each <= high + 1e-12 for each in ticks)


def test_the_files_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    report = make_report(quality=QUALITY)
    for folder in ("a", "b"):
        write_report(report, tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["report.html", "report.json"]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert json.loads((tmp_path / "a" / "report.json").read_text()) == report
    assert (tmp_path / "a" / "report.html").read_text(encoding="utf-8") == usual(rated=True)


@pytest.mark.parametrize("changes", [{"version": 2}, {"format": "colonnade model"}])
def test_another_format_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="version 1"):
        write_report(make_report(**changes), tmp_path)


def test_numbers_that_json_does_not_have_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_report(make_report(seconds=float("nan")), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_category_is_told_as_one_column_with_its_levels_and_baseline() -> None:
    report = make_report()
    kind = {
        "type": "category",
        "levels": ["north", "<b>south</b>"],
        "other": "rest",
        "baseline": "north",
    }
    report["model"]["encodings"] = [{"party": "hospital", "name": "ward", "kind": kind}]
    report["model"]["label"]["levels"] = ["alive", "dead"]
    page = Page(to_html(report))
    assert page.says(
        "ward is one column of texts, with the levels <b>south</b>, rest; compared with"
    )
    assert page.says("stay is dead at its high value")
