"""Questions that were asked before: asking again spends again, so nobody does it by mistake."""

from collections.abc import Mapping
from datetime import UTC, datetime

from colonnade.core.errors import DuplicateJob
from colonnade.methods.base import Unit
from colonnade.methods.messages import UNITS
from colonnade.privacy.accounting import rho_from_units
from colonnade.server.engine.rounds import Run
from colonnade.server.engine.status import job_status
from colonnade.server.store.base import Store
from colonnade.v1 import jobs_pb2
from colonnade.wire.jobspec import question_of


def refuse_repeated(store: Store, runs: Mapping[str, Run], spec: bytes) -> None:
    """Refuse a job whose question an earlier one asked that cost something or still may."""
    question = question_of(spec)
    for row in store.jobs():  # newest first
        if question_of(row.spec) != question:
            continue
        run = runs.get(row.job_id)
        status = jobs_pb2.JobStatus.FromString(row.outcome) if run is None else job_status(run)
        spent = [party.spent_units for party in status.parties]
        if run is None and not any(spent):
            continue
        when = datetime.fromtimestamp(row.submitted_at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        unit = UNITS.read(status.unit)
        whose = "in all" if unit is Unit.RECORD else "at most of any client"
        cost = f"rho {rho_from_units(unit.joint(spent)):.6g} {whose}"
        raise DuplicateJob(
            f"job {row.job_id[:12]} asked the same at {when}; it is {row.state.value} and cost "
            f"{cost} so far; to spend again on purpose, submit it with again=True"
        )
