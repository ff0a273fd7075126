"""A coordinator in numbers: what it shows to Prometheus, all of it public in the federation."""

from collections import Counter
from collections.abc import Sequence

from colonnade.server.credentials import LiveCredentials
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.store.base import State
from colonnade.wire.readings import CERTIFICATE_DAYS, Reading


def readings(engine: Coordinator, own: LiveCredentials | None = None) -> Sequence[Reading]:
    """Return where parties and jobs stand; called where the engine's methods are."""
    runs = [(run.row.job_id[:12], run) for run in engine.runs.values()]
    states = Counter(engine.ended.values())
    states.update(run.row.state for _, run in runs)
    attached = engine.attached
    days = () if own is None else (Reading.one(*CERTIFICATE_DAYS, own.days()),)
    return (
        *days,
        Reading(
            "colonnade_party_attached",
            "whether an enrolled party has a session",
            {(party,): float(party in attached) for party in engine.parties},
            ("party",),
        ),
        Reading(
            "colonnade_jobs",
            "jobs by state",
            {(state.value,): float(states[state]) for state in State},
            ("state",),
        ),
        Reading(
            "colonnade_job_rounds_done",
            "rounds done by a job that has not ended",
            {(name,): float(run.rounds_done) for name, run in runs},
            ("job",),
        ),
        Reading(
            "colonnade_job_rounds_planned",
            "rounds that such a job has in all",
            {(name,): float(run.job.rounds) for name, run in runs},
            ("job",),
        ),
        Reading(
            "colonnade_job_awaited",
            "whether such a job waits for a party's answer",
            {
                (name, member.party): float(member.party in run.awaited())
                for name, run in runs
                for member in run.job.members
            },
            ("job", "party"),
        ),
        Reading(
            "colonnade_job_payload_bytes",
            "payload that a party has sent for such a job",
            {
                (name, party): float(counts.payload_bytes)
                for name, run in runs
                for party, counts in run.counts.items()
            },
            ("job", "party"),
        ),
    )
