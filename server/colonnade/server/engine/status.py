"""Where a job stands, as operators and parties see it, and whether its question is new."""

from collections.abc import Mapping
from datetime import UTC, datetime

from colonnade.core.errors import DuplicateJob
from colonnade.methods.base import Unit
from colonnade.methods.messages import UNITS
from colonnade.privacy.accounting import format_units
from colonnade.server.engine.rounds import Run
from colonnade.server.store.base import State, Store
from colonnade.v1 import jobs_pb2
from colonnade.wire.jobspec import job_from_bytes, question_of

_STATES = {
    State.PROPOSED: jobs_pb2.JOB_STATE_PROPOSED,
    State.RUNNING: jobs_pb2.JOB_STATE_RUNNING,
    State.FINISHED: jobs_pb2.JOB_STATE_FINISHED,
    State.FAILED: jobs_pb2.JOB_STATE_FAILED,
    State.CANCELLED: jobs_pb2.JOB_STATE_CANCELLED,
}


def job_status(run: Run) -> jobs_pb2.JobStatus:
    """Return where a job stands, but for who is attached."""
    row, job = run.row, run.job
    status = jobs_pb2.JobStatus(
        job_id=row.job_id,
        name=job.name,
        state=_STATES[row.state],
        reason=row.reason,
        rounds_done=run.rounds_done,
        rounds=run.rounds,
        submitted_at=row.submitted_at,
        ended_at=row.ended_at,
        submitted_by=row.submitted_by,
        unit=UNITS.write(job.unit),
        purpose=job.purpose,
    )
    awaited = () if row.state.ended else run.awaited()
    used = run.features_used() if row.state is State.FINISHED else {}
    for member in job.members:
        decision = run.decisions.get(member.party)
        told = "" if decision is None else decision.message or decision.code
        waiting = decision is not None and decision.waiting
        status.parties.add(
            party=member.party,
            accepted=decision is not None and decision.accepted,
            awaited=member.party in awaited,
            spent_units=run.spent(member.party),
            max_units=job.method.max_units(member.party),
            payload_bytes=run.counts[member.party].payload_bytes,
            features_used=used.get(member.party),
            refusal="" if waiting or decision is None or decision.accepted else told,
            waiting=told if waiting else "",
        )
    return status


def refuse_repeated(store: Store, runs: Mapping[str, Run], spec: bytes) -> None:
    """Refuse a job whose question an earlier one asked that cost something or still may.

    Asking again spends again, so nobody does it by mistake.
    """
    question = question_of(spec)
    for row in store.jobs():  # newest first
        if question_of(row.spec) != question:
            continue
        run = runs.get(row.job_id)
        if run is None and not row.state.ended:  # another process runs it
            run = Run.load(store, row, now=0.0)
        status = jobs_pb2.JobStatus.FromString(row.outcome) if run is None else job_status(run)
        spent = [party.spent_units for party in status.parties]
        if run is None and not any(spent):
            continue
        when = datetime.fromtimestamp(row.submitted_at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        unit = UNITS.read(status.unit)
        whose = "in all" if unit is Unit.RECORD else "at most of any client"
        delta = job_from_bytes(row.spec).delta
        cost = f"{format_units(unit.joint(spent), delta)} {whose}"
        raise DuplicateJob(
            f"job {row.job_id[:12]} asked the same at {when}; it is {row.state.value} and cost "
            f"{cost} so far; asking again spends again"
        )
