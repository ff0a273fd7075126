"""Where a job stands, as operators and parties see it."""

from colonnade.methods.messages import UNITS
from colonnade.server.engine.rounds import Run
from colonnade.server.store.base import State
from colonnade.v1 import jobs_pb2

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
            max_units=job.max_units(member.party),
            payload_bytes=run.counts[member.party].payload_bytes,
            features_used=used.get(member.party),
            refusal="" if waiting or decision is None or decision.accepted else told,
            waiting=told if waiting else "",
        )
    return status
