"""Jobs and parties as people see them: public numbers from the store."""

from colonnade.core.errors import BadInput, UnknownJob
from colonnade.methods.base import Unit
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.offers import bounds_to_use
from colonnade.server.engine.rounds import Run
from colonnade.server.engine.status import job_status
from colonnade.server.store.base import JobRow, PartyRow, State, Store
from colonnade.v1 import federation_pb2, jobs_pb2
from colonnade.wire.jobspec import feature_to_proto, job_from_bytes
from colonnade.wire.session import public_text


def find_job(engine: Coordinator, store: Store, prefix: str) -> JobRow:
    """Return the one job whose name begins so; one that runs is found without the store."""
    if store.peers is not None:
        found = list(store.named(prefix)) if prefix else []
    else:
        names = (*engine.runs, *engine.ended)
        found = [name for name in names if prefix and name.startswith(prefix)]
    if not found:
        raise UnknownJob(f"there is no job {public_text(prefix, 64)!r}; see colonnade job list")
    if len(found) > 1:
        raise BadInput(f"{len(found)} jobs begin with {prefix!r}; give more of the name")
    if (run := engine.runs.get(found[0])) is not None:
        return run.row
    if (row := store.job(found[0])) is None:
        raise UnknownJob(f"there is no job {public_text(prefix, 64)!r}; see colonnade job list")
    return row


def run_of(engine: Coordinator, store: Store, row: JobRow) -> Run:
    """Return a job with its state, whether it has ended or not."""
    return engine.runs.get(row.job_id) or Run.load(store, row, now=0.0)


def status_of(engine: Coordinator, store: Store, row: JobRow) -> jobs_pb2.JobStatus:
    """Return where a job stands; of one that has ended, what was kept then."""
    if row.outcome:
        status = jobs_pb2.JobStatus.FromString(row.outcome)
    else:
        status = job_status(run_of(engine, store, row))
    for progress in status.parties:
        progress.attached = progress.party in engine.attached
    return status


def releases_of(store: Store, row: JobRow) -> list[jobs_pb2.PartyReleases]:
    """Return what the parties of a finished job over columns released, in the order of rounds."""
    job = job_from_bytes(row.spec)
    if row.state is not State.FINISHED or job.unit is not Unit.RECORD or not job.label:
        raise BadInput(f"job {row.job_id[:12]} is no finished job over columns")
    found = {each.party: jobs_pb2.PartyReleases(party=each.party) for each in job.members}
    for round_ in range(job.rounds + 1):
        for party, body in store.answers(row.job_id, round_).items():
            submission = federation_pb2.Submission.FromString(body)
            found[party].releases.extend(submission.releases)
    return list(found.values())


def party_status(engine: Coordinator, row: PartyRow) -> jobs_pb2.PartyStatus:
    """Return what a party offers, with the bounds that a job should use."""
    offer = federation_pb2.Offer.FromString(row.offer)
    status = jobs_pb2.PartyStatus(
        party=row.name,
        attached=row.name in engine.attached,
        dataset=offer.dataset,
        population=offer.population,
        cap_units=offer.cap_units,
        used_units=offer.spent_units + offer.reserved_units,
        unit=offer.unit,
        told_at=row.told_at,
        bounds_units=offer.bounds_units,
        encodings=offer.encodings,
        alignment=offer.alignment,
        align_people=offer.align_people,
        align_ids=offer.align_ids,
        align_repeated=offer.align_repeated,
        ledger_key=row.ledger_key,
        sealed=offer.sealed if offer.HasField("sealed") else None,
    )
    declared = {feature.name: (feature.fill, feature.group) for feature in offer.features}
    for name, bounds in bounds_to_use(offer).items():
        column = feature_to_proto(name, bounds, *declared.get(name, ()))
        if offer.HasField("label") and name == offer.label.name:
            status.label.CopyFrom(column)
        else:
            status.features.append(column)
    return status
