"""The report: every number, everything escaped, the same bytes each time."""

import functools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest

from colonnade.data.model import LinearModel, ModelFeature, ModelLabel
from colonnade.privacy.accounting import RHO_UNIT, epsilon_of, rho_of
from colonnade.report import Report, state_promise, write_report
from colonnade.report.html import NO_PLOTS, render
from colonnade.report.markup import Markup, at_most, join, short, size, tag
from colonnade.report.model_plots import _spread
from colonnade.report.plots import draw_plots

HOSTILE = "$\\frac{$<script>alert('x')</script> & \"quoted\" --> ]]> \x00\x1b\ud800"
DELTA = 1e-6


def amount(units: int) -> dict[str, Any]:
    rho = units / RHO_UNIT
    return {"units": units, "rho": rho, "epsilon": epsilon_of(rho, DELTA)}


def costs(most: int, spent: int, bounds: int) -> dict[str, Any]:
    total = {"max": amount(most + bounds), "spent": amount(spent + bounds)}
    return {
        "max": amount(most),
        "spent": amount(spent),
        "bounds": amount(bounds),
        "total": total,
    }


def make_report(
    *,
    parties: Sequence[str] = ("hospital", "laboratory", "insurer"),
    n_features: int = 4,
    rounds: int = 5,
    done: int | None = None,
    name: str = "Length of stay",
    feature: str = "feature",
    bounds: int = 0,
    **changes: Any,
) -> Report:
    """Make a report whose numbers nearly all differ."""
    done = rounds if done is None else done
    most = int(rho_of(1.0, DELTA) * RHO_UNIT) // len(parties)
    select, share = most // (2 * rounds), most // (2 * rounds) - 1001
    rows, path, by_round = [], [], []
    coef = {party: [0.0] * n_features for party in parties}
    for round_ in range(done):
        for place, party in enumerate(parties):
            moved = [0.9 * value for value in coef[party]]
            moved[(round_ + place) % n_features] += 0.1 * (-1) ** round_ + 0.01 * place
            coef[party] = moved
            for kind, payload in (("select", 4), ("share", 1500 + 10 * round_ + place)):
                rows.append(
                    {
                        "round": round_,
                        "party": party,
                        "kind": kind,
                        "payload_bytes": payload,
                        "predicted_bytes": payload + round_ % 2,
                        "wire_bytes": payload + 57,
                        "messages": 1 + place,
                        "retry_bytes": 7 * place,
                    }
                )
        by_round.append({"round": round_, "spent": dict.fromkeys(parties, select + share)})
        path.append({"round": round_, "coef": {party: list(c) for party, c in coef.items()}})
    model = LinearModel(
        "ab" * 32,
        "squared",
        ModelLabel("stay", 0.0, 30.0),
        0.0625,
        tuple(
            ModelFeature(party, f"{feature} {place}", -1.5 * place, 10.0 + place, 5.0, value)
            for party in parties
            for place, value in enumerate(coef[party])
        ),
        private=True,
    )
    spent = done * (select + share)
    privacy: dict[str, Any] = {
        "delta": DELTA,
        "statement": "The promise in a sentence.",
        "bounds_note": "which bounds are used",
        "joint": costs(most * len(parties), spent * len(parties), bounds * len(parties)),
        "label": {**costs(most + 5, spent + 3, bounds), "who": "all hold it"},
        "parties": [
            {
                "party": party,
                **costs(most + place, spent + place, bounds),
                "cap": None if place == 1 else amount((3 + place) * most),
                "ledger_spent": None if place == 1 else amount(2 * most + place),
                "by_kind": [
                    {"kind": "select", "releases": done, "spent": amount(done * select)},
                    {"kind": "share", "releases": done + 50, "spent": amount(done * share)},
                ],
            }
            for place, party in enumerate(parties)
        ],
        "by_round": by_round,
    }
    sizes = ("payload_bytes", "predicted_bytes", "wire_bytes", "retry_bytes")
    report = {
        "format": "colonnade report",
        "version": 1,
        "job_id": "ab" * 32,
        "name": name,
        "method": "frank-wolfe",
        "state": "finished",
        "reason": "",
        "private": True,
        "submitted_at": "2025-03-04T10:11:12Z",
        "ended_at": "2025-03-04T10:13:40Z",
        "seconds": 148.25,
        "n_rows": 123_456,
        "loss": "squared",
        "labels": "shared",
        "rounds": {"planned": rounds, "done": done},
        "parameters": {"sketch_dim": 2048, "radius": 1.4375, "sampling": "all"},
        "privacy": privacy,
        "uplink": {key: sum(cast("int", row[key]) for row in rows) for key in sizes}
        | {"rows": rows},
        "model": model.to_object() if done else None,
        "path": path,
        "unused": [],
        "quality": None,
    }
    return cast("Report", report | changes)


QUALITY = {
    "simulation_only": True,
    "metric": "auc",
    "ours": 0.7123,
    "nonprivate": 0.8456,
    "central": 0.7789,
    "by_round": [0.511, 0.622, 0.699, 0.706, 0.7123],
    "rows": "held-out",
    "n_rows": 4321,
    "central_is": "What the private reference is.",
    "nonprivate_is": "What the other reference is.",
}


@functools.cache
def usual(*, rated: bool) -> str:
    """Return the page of a usual job, drawn once for all tests that only read it."""
    return render(make_report(quality=QUALITY if rated else None))


def make_moments(
    parties: Sequence[str] = ("hospital", "laboratory", "insurer"),
    n_features: int = 4,
    *,
    feature: str = "feature",
    **changes: Any,
) -> dict[str, Any]:
    """Make the part of a moments job, with numbers that differ."""
    features = [
        {"party": party, "name": f"{feature} {place}"}
        for party in parties
        for place in range(n_features)
    ]
    size = len(features)
    coef = [0.3 * (-1) ** place / (1 + place) for place in range(size)]
    return {
        "features": features,
        "left_out": 0,
        "path": {
            "penalties": [0.4, 0.2, 0.1, 0.05],
            "coefs": [[strength * each for each in coef] for strength in (0.0, 0.3, 0.7, 1.0)],
            "chosen": 0.12,
        },
        "correlations": [
            [1.0 if i == j else 0.4 * (-1) ** (i + j) / (1 + i + j) for j in range(size + 1)]
            for i in range(size + 1)
        ],
        "intervals": {
            "level": 0.95,
            "coef": coef,
            "error": [0.01 + 0.001 * place for place in range(size)],
            "low": [each - 0.02 for each in coef],
            "high": [each + 0.02 for each in coef],
        },
        "explained": {"share": 0.7317, "error": 0.0613},
        **changes,
    }


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
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text.append(data)

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if (tag, name) == ("data", "value"):
                self.values.add(value or "")
            if name == "id":
                self.ids.append(value or "")

    def says(self, text: str) -> bool:
        return text in "".join(self.text)


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
    missing = {n for n in numbers(shown | {"model": model}) if repr(n) not in page.values}
    assert missing == set()
    model.pop("format")
    shown["quality"] = None  # "auc" is spelled out
    assert [text for text in texts(shown | {"model": model}) if not page.says(text)] == []


def test_what_is_read_is_what_is_meant() -> None:
    page = Page(usual(rated=False))
    assert page.says("The promise in a sentence.")
    assert page.says("ε ≤ 1promised to a person at every party; spent")
    assert page.says("δ = 1e-6")
    assert page.says("Whose releases depend on the label: all hold it.")
    assert not page.says("simulation only")
    assert not page.says("NOT PRIVATE")


def test_a_promise_is_never_rounded_down() -> None:
    for value in (0.55641, 0.5564, 1.0, 0.9999999, 12.341, 3.3e-7, 0.1 + 0.2):
        assert value <= float(at_most(value)) <= value * 1.0101
    assert (at_most(1.0), at_most(0.33), at_most(0.3303), at_most(0.0)) == (
        "1",
        "0.33",
        "0.331",
        "0",
    )
    privacy = make_report()["privacy"]
    total = privacy["joint"]["total"]
    assert total is not None
    total["max"]["epsilon"] = 2.001
    assert "epsilon at most 2.01 for a person" in state_promise(privacy)
    assert "hospital 0.5" in state_promise(privacy)


def test_a_simulation_is_marked_and_its_quality_too() -> None:
    page = Page(render(make_report(quality=QUALITY, private=False)))
    assert page.says("NOT PRIVATE")
    assert page.says("Not true of this run")
    assert page.says("simulation only")
    assert page.says("this job: 0.712")
    assert page.says("private, all data in one place: 0.779")


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_job_that_ended_early_gives_its_reason_and_the_model_so_far(state: str) -> None:
    page = Page(render(make_report(done=2, state=state, reason="a party withdrew")))
    assert page.says(f"{state.capitalize()}: a party withdrew")
    assert page.says("the model so far, after 2 of 5 rounds")
    page = Page(render(make_report(done=0, state=state, reason="a party withdrew", ended_at=None)))
    assert page.says("There is no model")
    assert page.says("Nothing left the parties.")
    assert page.tags.count("svg") == 1  # the maximum and the caps are still drawn


def test_a_finished_job_has_all_its_plots_and_nothing_from_elsewhere() -> None:
    page = Page(usual(rated=True))
    assert page.tags.count("svg") == 7
    assert {"script", "link", "img", "iframe", "object"} & {*page.tags} == set()
    fetched = [a for a in page.attributes if a[1] in ("src", "href", "xlink:href", "action")]
    assert [value for _, _, value in fetched if not value.startswith("#")] == []
    assert len(page.ids) == len({*page.ids})
    references = {value[1:] for _, _, value in fetched}
    assert references <= {*page.ids}
    text = usual(rated=False)
    assert "http" not in text
    assert "@import" not in text


def test_a_moments_job_shows_what_else_its_releases_tell() -> None:
    moments = make_moments()
    page = Page(render(make_report(method="moments", moments=moments)))
    assert page.tags.count("svg") == 9  # six of every job, and three
    for found in (moments["intervals"], moments["explained"]):
        assert {repr(number) for number in numbers(found)} - {"0.95"} <= page.values
    assert page.says("costs nothing further")
    assert page.says("explains 0.73 ± 0.12 of")
    assert page.says("95% intervals")
    # The heat map is a picture within the page; nothing else is fetched from anywhere.
    pictures = [value for tag_, name, value in page.attributes if (tag_, name) == ("image", "href")]
    assert len(pictures) == 2
    assert all(value.startswith("data:image/png;base64,") for value in pictures)
    other = Page(usual(rated=False))
    assert not other.says("More from the same releases")


def test_intervals_and_accuracy_are_left_out_with_their_reason() -> None:
    nothing = make_moments(intervals=None, explained=None, left_out=7)
    page = Page(render(make_report(method="moments", moments=nothing)))
    assert page.tags.count("svg") == 8
    assert page.says("There are no intervals and no accuracy")
    assert page.says("not bought")
    assert page.says("7 features that have less to do with the label")
    vague = make_moments(explained={"share": 0.9, "error": 0.3})
    page = Page(render(make_report(method="moments", moments=vague)))
    assert page.says("say too little to tell")
    assert not page.says("0.90 ±")


@pytest.mark.parametrize(("n_parties", "n_features"), [(1, 1), (2, 3), (10, 12)])
def test_moments_are_drawn_for_any_size_and_name(
    n_parties: int, n_features: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parties = [HOSTILE, *(f"party {place}" for place in range(1, n_parties))]
    moments = make_moments(parties, n_features, feature=HOSTILE)
    report = make_report(parties=parties, n_features=n_features, moments=moments)
    plots = draw_plots(report) or {}
    assert {"l1_path", "intervals", "correlations"} <= {*plots}
    for plot in plots.values():
        assert ET.fromstring(plot).get("role") == "img"
    # They are drawn already.
    monkeypatch.setattr("colonnade.report.html.draw_plots", lambda _: plots)
    page = Page(render(report))
    assert page.tags.count("svg") == len(plots)
    assert "script" not in page.tags
    assert len(page.ids) == len({*page.ids})


def test_plots_are_well_formed_and_take_the_page_colours() -> None:
    plots = draw_plots(make_report(quality=QUALITY, feature=HOSTILE)) or {}
    assert len(plots) == 7
    for plot in plots.values():
        assert ET.fromstring(plot).get("role") == "img"
        assert "var(--ink)" in plot or "var(--muted)" in plot
        assert not any(f"#0{digit}0{digit}0{digit}" in plot for digit in "1234")


def test_hostile_names_stay_text() -> None:
    who = [HOSTILE, "_b", "<i>"]
    report = make_report(parties=who, name=HOSTILE, feature=HOSTILE, reason=HOSTILE, method=HOSTILE)
    report["parameters"] = {HOSTILE: HOSTILE}
    report["privacy"]["statement"] = HOSTILE
    report["privacy"]["label"]["who"] = HOSTILE
    text = render(report)
    page = Page(text)
    assert {"script", "i"} & {*page.tags} == set()
    assert page.says("$\\frac{$<script>alert('x')</script> & \"quoted\" --> ]]> \ufffd\ufffd\ufffd")
    text.encode("utf-8")


def test_markup_escapes_all_but_markup() -> None:
    assert tag("p", "<&>", tag("b", "x"), title='"<') == (
        '<p title="&quot;&lt;">&lt;&amp;&gt;<b>x</b></p>'
    )
    assert join([Markup("<hr>"), "<hr>"]) == "<hr>&lt;hr&gt;"


def test_numbers_are_short_and_sizes_have_units() -> None:
    assert [short(1e-6), short(-0.0), short(1234567), short(0.123456), short(1.5e12)] == [
        "1e-6",
        "0",
        "1,234,567",
        "0.1235",
        "1.5e12",
    ]
    assert [size(0), size(999), size(12_345), size(1_234_567), size(5 * 10**9)] == [
        "0 B",
        "999 B",
        "12.3 kB",
        "1.23 MB",
        "5 GB",
    ]


@pytest.mark.parametrize(
    ("n_parties", "n_features", "rounds"), [(1, 1, 1), (16, 3, 2), (2, 120, 90)]
)
def test_extremes_are_drawn(n_parties: int, n_features: int, rounds: int) -> None:
    parties = [f"party-{number:02d}" for number in range(n_parties)]
    report = make_report(parties=parties, n_features=n_features, rounds=rounds)
    page = Page(render(report))
    assert page.tags.count("svg") == 6
    if n_features == 120:
        used = sum(1 for f in (report["model"] or {})["features"] if f["coef_scaled"])
        assert page.says(f"The largest 40; {used - 40:,d} more are smaller.")


def test_names_at_the_ends_of_curves_keep_apart_and_in_order() -> None:
    ends = [0.5, 0.51, 0.5, 0.9, 1.0, 0.02, 0.0]
    moved = _spread(ends)
    ordered = sorted(moved)
    gaps = [b - a for a, b in pairwise(ordered)]
    assert min(gaps) > 0.0619
    assert min(ordered) >= 0.0
    assert max(ordered) <= 1.0
    assert moved[5] > moved[6]
    assert moved[4] > moved[3]
    assert moved[3] == 0.9


def test_without_matplotlib_the_tables_come_with_one_line_of_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report = make_report(quality=QUALITY)
    text = render(report)
    page = Page(text)
    assert "svg" not in page.tags
    assert text.count("pip install matplotlib") == 1
    assert page.says(NO_PLOTS)
    assert {repr(n) for n in numbers(report["privacy"])} <= page.values


def test_another_import_error_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert draw_plots(make_report()) is None

    def fail(*_: object) -> None:
        raise ImportError("broken", name="numpy")

    monkeypatch.setattr("colonnade.report.plots.draw_spend", fail)
    with pytest.raises(ImportError, match="broken"):
        draw_plots(make_report())


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


def test_a_users_own_style_changes_nothing() -> None:
    import matplotlib as mpl

    before = usual(rated=False)
    with mpl.rc_context({"font.size": 20.0, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert render(make_report()) == before
        assert mpl.rcParams["font.size"] == 20.0  # and ours does not leak


@pytest.mark.parametrize("changes", [{"version": 2}, {"format": "colonnade model"}])
def test_another_format_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="version 1"):
        write_report(make_report(**changes), tmp_path)


def test_numbers_that_json_does_not_have_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_report(make_report(seconds=float("nan")), tmp_path)
    assert list(tmp_path.iterdir()) == []
