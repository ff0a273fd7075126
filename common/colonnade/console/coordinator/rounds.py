"""A running job by round and party: who answered with how many bytes, who is waited for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colonnade.client.results import JobReport
from colonnade.client.views import JobView
from colonnade.report.text import listed, size


@dataclass(frozen=True, slots=True)
class RoundCell:
    """One party in one round: done with so many bytes, waited for, or not yet asked."""

    state: str  # done, wait, next
    text: str


@dataclass(frozen=True, slots=True)
class RoundRow:
    """A round of a running job."""

    number: int
    kinds: str
    cells: tuple[RoundCell, ...]
    measured: int
    predicted: int

    @property
    def equal(self) -> bool:
        """Whether all that came was predicted."""
        return self.measured <= self.predicted


def rounds(job: JobView, report: JobReport) -> tuple[RoundRow, ...]:
    """Return the rounds that have begun: who answered with how many bytes, who is waited for."""
    uplink = report["uplink"]["rows"]
    waited = {each.party for each in job.parties if each.awaited}
    numbers = sorted({row["round"] for row in uplink if row["payload_bytes"]})
    if waited and (
        not numbers or all(_answered(uplink, numbers[-1], each.party) for each in job.parties)
    ):
        numbers.append(numbers[-1] + 1 if numbers else 0)  # asked, and nobody has answered yet
    found = []
    for number in numbers:
        rows = [row for row in uplink if row["round"] == number and row["payload_bytes"]]
        cells = tuple(
            _round_cell(rows, each.party, waited=each.party in waited and number == numbers[-1])
            for each in job.parties
        )
        kinds = listed(sorted({row["kind"] for row in rows}))
        measured = sum(row["payload_bytes"] for row in rows)
        predicted = sum(row["predicted_bytes"] for row in rows)
        found.append(RoundRow(number, kinds, cells, measured, predicted))
    return tuple(found)


def _answered(uplink: Sequence[Mapping[str, int | str]], number: int, party: str) -> bool:
    return any(
        row["round"] == number and row["party"] == party and row["payload_bytes"] for row in uplink
    )


def _round_cell(rows: Sequence[Mapping[str, int | str]], party: str, *, waited: bool) -> RoundCell:
    sent = sum(int(row["payload_bytes"]) for row in rows if row["party"] == party)
    if sent:
        return RoundCell("done", size(sent))
    return RoundCell("wait", "waiting") if waited else RoundCell("next", "not asked")
