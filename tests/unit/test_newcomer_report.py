"""What a reader of a report would stumble over: orders, names, scales, numbers that are missing."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from colonnade.cli.job.admm import _job
from colonnade.cli.job.hand_in import hand_in
from colonnade.client.builder import JobOptions, author
from colonnade.client.client import Client, PartyOffer
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.report import cost_plots, model_plots
from colonnade.report.cost_plots import draw_traffic, draw_uplink
from colonnade.report.html import _in_order
from colonnade.report.markup import Markup, number, short
from colonnade.report.model_plots import draw_path, draw_quality
from colonnade.report.model_sections import quality_section
from colonnade.wire.jobspec import job_to_bytes

PARTIES = ("hospital", "laboratory", "insurer")


def offers() -> list[PartyOffer]:
    bounds = Bounds(0.0, 1.0)
    return [
        PartyOffer(
            party,
            True,
            "v",
            20_000,
            features={f"{party} x": bounds},
            fills={f"{party} x": 0.5},
            label=("y", bounds),
            cap_units=2**50,
            used_units=0,
        )
        for party in PARTIES
    ]


@pytest.mark.parametrize("scope", ["joint", "party"])
def test_a_party_that_is_named_twice_does_not_count_twice(scope: str) -> None:
    with pytest.raises(BadInput, match="more than once"):
        author(offers(), JobOptions(scope=scope), target="y", parties=["hospital", "hospital"])


def test_nor_in_a_job_over_clients() -> None:
    with pytest.raises(BadInput, match="more than once"):
        _job(argparse.Namespace(parties="hospital, hospital", without=None), offers())


def test_a_label_owner_alone_has_a_label_that_all_hold() -> None:
    job = author(offers(), JobOptions(label_owner="hospital"), target="y")
    assert job.label_parties() == ("hospital",)


@pytest.mark.parametrize("place", ["", "nowhere/job.spec", "file/job.spec"])
def test_a_specification_that_cannot_be_written_is_not_submitted(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("")
    spec = job_to_bytes(author(offers(), JobOptions(), target="y"))
    arguments = argparse.Namespace(write_spec=tmp_path / place, dry_run=False, json=False)
    with Client("127.0.0.1:1", None) as client, pytest.raises(BadInput, match="name another"):
        hand_in(client, spec, arguments)


def uplink_by_name() -> Any:
    """Return uplink as a coordinator lists it: by name, with messages that have no payload."""
    rows = [
        {
            "round": round_,
            "party": party,
            "kind": kind,
            "payload_bytes": payload,
            "predicted_bytes": payload,
            "wire_bytes": 300,
            "messages": 1,
            "retry_bytes": 0,
        }
        for round_ in range(2)
        for party in sorted(PARTIES)
        for kind, payload in (("control", 0), ("select", 4), ("share", 1500))
    ]
    return {"rows": rows}


def test_parties_come_in_one_order() -> None:
    parties = [{"party": party} for party in PARTIES]
    report: Any = {"privacy": {"parties": parties}, "uplink": uplink_by_name()}
    rows = _in_order(report)["uplink"]["rows"]
    assert tuple(dict.fromkeys(row["party"] for row in rows)) == PARTIES
    assert [row["round"] for row in rows] == [0] * 9 + [1] * 9
    assert [row["kind"] for row in rows[:3]] == ["control", "select", "share"]
    assert report["uplink"] == uplink_by_name()  # what is written as JSON stays


@pytest.mark.parametrize("draw", [draw_uplink, draw_traffic])
def test_messages_without_payload_have_no_colour(
    monkeypatch: pytest.MonkeyPatch, draw: Any
) -> None:
    labels: list[str] = []

    def note(_: object, axes: Any) -> None:
        labels.extend(axes.get_legend_handles_labels()[1])

    monkeypatch.setattr(cost_plots, "legend", note)
    assert draw(uplink_by_name()) is not None
    assert sorted(labels) == ["predicted", "select", "share"]


def test_features_that_ended_at_zero_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [([0.1, 0.3], [0.2]), ([0.0, 0.4], [0.0])]
    path = [
        {"round": round_, "coef": {"hospital": first, "insurer": second}}
        for round_, (first, second) in enumerate(points)
    ]
    named: list[tuple[str, str]] = []

    def note(_: object, curves: Any, __: object) -> None:
        named.extend((party, name) for party, name, _ in curves)

    monkeypatch.setattr(model_plots, "name_ends", note)
    report: Any = {"model": None, "path": path}
    assert draw_path(report, {"hospital": "#000000", "insurer": "#ffffff"}) is not None
    assert named == [("hospital", "feature 2")]


def rated(**changes: Any) -> Any:
    quality = {"metric": "r2", "ours": 0.5, "nonprivate": 0.7, "central": 0.6, "by_round": [0, 0.5]}
    quality |= {"rows": "held-out", "n_rows": 9, "central_is": "", "nonprivate_is": ""}
    return {"quality": quality | changes, "path": []}


def test_a_bad_first_step_does_not_flatten_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[float, float]] = []
    monkeypatch.setattr(model_plots, "legend", lambda _, axes: limits.append(axes.get_ylim()))
    for first in (-6.0, 0.0):
        report = rated(by_round=[first, 0.5])
        plots = {"quality": Markup(draw_quality(report) or "")}
        assert ("not drawn" in quality_section(report, plots)) == (first < -1.0)
    assert limits[0] == (-1.0, 1.05)
    assert -1.0 < limits[1][0] < 0.0


@pytest.mark.parametrize(("rows", "told"), [("held-out", "held out"), ("fitted", "flatters")])
def test_quality_says_on_which_rows_it_was_computed(rows: str, told: str) -> None:
    report = rated(
        rows=rows, n_rows=4321, central_is="A private one.", nonprivate_is="A plain one."
    )
    text = quality_section(report, {})
    assert number(4321) in text
    assert told in text
    assert "A private one." in text
    assert "A plain one." in text


def test_amounts_in_some_unit_have_no_exponent() -> None:
    assert [short(10200.0), short(-34336.6), short(9_999_999.0)] == [
        "10,200",
        "-34,337",
        "9,999,999",
    ]
    assert [short(9999.4), short(1e7), short(12.3456)] == ["9999", "1e7", "12.35"]
