"""What a reader of a report would stumble over: orders, names, scales, numbers that are missing."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from colonnade.cli.job.hand_in import hand_in
from colonnade.client import AdmmOptions, Client, JobOptions, JobPlan, PartyOffer
from colonnade.client.builder import build_admm_job, build_job
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.report.parts import Chart, Grid, Note, Section, Table
from colonnade.report.schema import PathPoint, Report, Uplink, UplinkRow
from colonnade.report.schema_parts import Quality
from colonnade.report.text import seconds, short
from colonnade.report.views.model import path_blocks
from colonnade.report.views.quality import quality_section
from colonnade.report.views.sent import sent_section
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
    with pytest.raises(BadInput, match="once"):
        build_job(offers(), JobOptions(scope=scope), target="y", parties=["hospital", "hospital"])


def test_nor_in_a_job_over_clients() -> None:
    with pytest.raises(BadInput, match="once"):
        build_admm_job(offers(), AdmmOptions(), target="y", parties=["hospital", "hospital"])


def test_a_label_owner_alone_has_a_label_that_all_hold() -> None:
    job = build_job(offers(), JobOptions(label_owner="hospital"), target="y")
    assert job.label_parties() == ("hospital",)


@pytest.mark.parametrize("place", ["", "nowhere/job.spec", "file/job.spec"])
def test_a_specification_that_cannot_be_written_is_not_submitted(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("")
    spec = job_to_bytes(build_job(offers(), JobOptions(), target="y"))
    arguments = argparse.Namespace(write_spec=tmp_path / place, dry_run=False, json=False)
    with Client("127.0.0.1:1", None) as client, pytest.raises(BadInput, match="name another"):
        hand_in(client, JobPlan(spec, {}), arguments)


def blank(**changes: Any) -> Report:
    """Return a report of nothing but what a test is about."""
    return Report(job_id="", name="", loss="squared", private=True, model=None, **changes)


def uplink_by_name() -> Uplink:
    """Return uplink as a coordinator lists it: by name, with messages that have no payload."""
    rows = tuple(
        UplinkRow(
            round=round_,
            party=party,
            kind=kind,
            payload_bytes=payload,
            predicted_bytes=payload,
            wire_bytes=300,
            messages=1,
            retry_bytes=0,
        )
        for round_ in range(2)
        for party in sorted(PARTIES)
        for kind, payload in (("control", 0), ("select", 4), ("share", 1500))
    )
    return Uplink(
        payload_bytes=9024, predicted_bytes=9024, wire_bytes=5400, retry_bytes=0, rows=rows
    )


def test_bytes_are_by_round_and_what_has_no_payload_is_not_drawn() -> None:
    uplink = uplink_by_name()
    table = sent_section(blank(uplink=uplink), uplink).blocks[0]
    assert isinstance(table, Table)
    assert [row.cells[0].text for row in table.rows] == ["0", "1", "all rounds"]
    for row in table.rows[:2]:
        strip = row.cells[1].strip
        assert strip is not None
        bars = [mark for mark in strip.marks if mark.shape == "bar"]
        assert [mark.title.partition(":")[0] for mark in bars] == sorted(PARTIES)
        assert row.cells[2].value == row.cells[3].value == 4512


def test_features_that_ended_at_zero_are_not_named() -> None:
    points = [((0.1, 0.3), (0.2,)), ((0.0, 0.4), (0.0,))]
    path = tuple(
        PathPoint(round=round_, coef={"hospital": first, "insurer": second})
        for round_, (first, second) in enumerate(points)
    )
    (chart,) = path_blocks(blank(path=path))
    assert isinstance(chart, Chart)
    assert len(chart.lines) == 3
    assert [text for _, text, _ in chart.names] == ["feature 2"]


def rated(**changes: Any) -> Report:
    quality = {"metric": "r2", "ours": 0.5, "nonprivate": 0.7, "central": 0.6}
    quality |= {"by_round": (0.0, 0.5), "rows": "held-out", "n_rows": 9}
    found: dict[str, Any] = {**quality, "central_is": "", "nonprivate_is": ""}
    return blank(quality=Quality(**(found | changes)))


def blocks_of(section: Section | None) -> list[Any]:
    """Return the blocks of a section, those in grids too."""
    assert section is not None
    blocks: list[Any] = []
    for block in section.blocks:
        blocks += block.blocks if isinstance(block, Grid) else [block]
    return blocks


def test_a_bad_first_step_does_not_flatten_the_rest() -> None:
    for first in (-6.0, 0.0):
        blocks = blocks_of(quality_section(rated(by_round=(first, 0.5))))
        (chart,) = [block for block in blocks if isinstance(block, Chart)]
        assert ("not drawn" in chart.caption) == (first < -1.0)
        lowest = min(float(text.replace("−", "-")) for _, text in chart.y_ticks)
        assert lowest == (-1.0 if first < -1.0 else 0.0)


@pytest.mark.parametrize(("rows", "told"), [("held-out", "held out"), ("fitted", "flatters")])
def test_quality_says_on_which_rows_it_was_computed(rows: str, told: str) -> None:
    report = rated(
        rows=rows, n_rows=4321, central_is="A private one.", nonprivate_is="A plain one."
    )
    (note,) = [b for b in blocks_of(quality_section(report)) if isinstance(b, Note)]
    assert note.title == "Simulation only"
    assert "4,321" in note.text
    assert told in note.text
    assert note.items == ("A private one.", "A plain one.")


def test_amounts_in_some_unit_have_no_exponent() -> None:
    assert [short(10200.0), short(-34336.6), short(9_999_999.0)] == [
        "10,200",
        "-34,337",
        "9,999,999",
    ]
    assert [short(9999.4), short(1e7), short(12.3456)] == ["9,999", "1e7", "12.35"]


def test_one_second_is_not_one_seconds() -> None:
    assert [seconds(each, 2) for each in (1.0, 0.98, 1.2, 61.0)] == [
        "1 second",
        "0.98 seconds",
        "1.2 seconds",
        "61 seconds",
    ]
