"""Grants of predictions as agreements: for whom, until when, and how many rows are used."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from colonnade.core.errors import ColonnadeError
from colonnade.ledger.storage.snapshot import Snapshot
from colonnade.methods.prediction.spec import ASKED, PredictionSpec
from colonnade.party.policy import Policy
from colonnade.party.prediction.policy import PredictAllowance
from colonnade.privacy.disclosure import PREDICTION
from colonnade.wire.jobspec import job_from_bytes


@dataclass(frozen=True, slots=True)
class GrantRow:
    """One grant."""

    receiver: str
    purpose: str
    model: str
    rows: str
    state: tuple[str, str]  # of a chip, and its word


def grants(found: Snapshot, policy: Policy, today: dt.date) -> tuple[GrantRow, ...]:
    """Return a policy's grants; rows count over all grants of a receiver and a purpose."""
    used = Counter[tuple[str, str, str]]()
    for scored, count in _scored(found):
        used[scored] += count
    return tuple(_row(each, used, today) for each in policy.predictions)


def _row(each: PredictAllowance, used: Counter[tuple[str, str, str]], today: dt.date) -> GrantRow:
    count = used[each.coordinator.uri, each.receiver, each.purpose]
    state = ("warn", "Used up") if count >= each.max_rows else ("good", f"Until {each.until}")
    return GrantRow(
        receiver=each.receiver,
        purpose=each.purpose,
        model=f"the model of job {each.job[:12]}" if each.job else f"{len(each.models)} models",
        rows=f"{count:,d} of {each.max_rows:,d} rows used",
        state=("", f"Ended {each.until}") if today > each.until else state,
    )


def _scored(found: Snapshot) -> Iterator[tuple[tuple[str, str, str], int]]:
    """Yield what was scored: through whom, for whom and for what, and how many rows."""
    for key in found.state.stored:
        if (key.account, key.kind) != (PREDICTION, ASKED) or key.job not in found.specs:
            continue
        try:
            asked = job_from_bytes(found.specs[key.job]).method
        except ColonnadeError:
            continue
        proposal = found.state.docket.proposals[key.job].entry
        if isinstance(asked, PredictionSpec):
            yield (proposal.coordinator, asked.receiver, asked.purpose), asked.count
