"""A job as requested: by whom, for what purpose, and what it would do and cost."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from colonnade.client.description import describe
from colonnade.client.results import JobDetails, JobPlan
from colonnade.client.views import PartyOffer
from colonnade.core.errors import BadInput
from colonnade.methods.alignment.codec import run_name
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.methods.job import Job
from colonnade.wire.jobspec import job_from_bytes, job_to_bytes


def planned(
    job: Job | bytes,
    offers: Sequence[PartyOffer],
    *,
    operator: str,
    purpose: str = "",
    people: Mapping[tuple[str, ...], int] | None = None,
) -> JobPlan:
    """Return what a job would do and cost; bytes are taken as they are."""
    spec = specification(job, operator=operator, purpose=purpose)
    return JobPlan(spec, describe(job_from_bytes(spec), offers, people))


def specification(job: Job | bytes, *, operator: str, purpose: str = "") -> bytes:
    """Return the bytes of a job that names the operator and, if it is given, the purpose."""
    if isinstance(job, bytes):
        return job
    try:
        told = replace(
            job, purpose=(purpose or job.purpose).strip(), requested_by=operator or job.requested_by
        )
    except ValueError as error:
        raise BadInput(f"no such job: {error}") from None
    return job_to_bytes(told)


def alignment_named(finished: Iterable[JobDetails], name: str) -> tuple[AlignmentSpec, str]:
    """Return the alignment whose name begins so, and its job, of jobs that have finished."""
    for details in finished:
        method = details.job.method
        if isinstance(method, AlignmentJobSpec):
            spec = method.alignment
            if run_name(spec).hex().startswith(name):
                return spec, details.view.job_id
    raise BadInput(f"the coordinator has finished no alignment {name[:12]!r}")
