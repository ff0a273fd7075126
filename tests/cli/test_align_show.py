"""What an operator reads of an alignment that has ended."""

from typing import Any

from colonnade.cli.align.show import summary_lines


def shown(in_common: int) -> list[str]:
    """Return the notes about two parties of 12000 people each."""
    overlap = [
        {"parties": ["clinic"], "people": 12000},
        {"parties": ["employer"], "people": 11900},
        {"parties": ["clinic", "employer"], "people": in_common},
    ]
    report: dict[str, Any] = {"alignment": {"name": "1f" * 32, "kept": 24000, "overlap": overlap}}
    return [line for line in summary_lines(report) if line.startswith("note")]


def test_counts_are_shown_with_how_far_they_err() -> None:
    overlap = [{"parties": ["clinic"], "people": 120, "error": 24.4}]
    found = {"name": "1f" * 32, "kept": 200, "overlap": overlap}
    assert any(line.endswith("about 120 ± 24") for line in summary_lines({"alignment": found}))


def test_parties_that_share_next_to_nobody_are_asked_how_they_write_ids() -> None:
    (note,) = shown(in_common=-40)  # a count with noise
    assert "clinic and employer" in note
    assert shown(in_common=9000) == []
