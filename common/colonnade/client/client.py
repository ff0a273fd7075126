"""A client for operators: submit, list, watch, show, cancel, report.

Every call has a deadline, and every error is one of `colonnade.core.errors`:

    with Client("hub.example.org:7443", load_credentials(Path("pki"))) as client:
        job_id = client.submit(spec)
        for view in client.watch(job_id):
            print(view.state, view.rounds_done)
        report = client.report(job_id)
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import grpc

from colonnade.core.errors import BadMessage
from colonnade.core.fixedpoint import Bounds
from colonnade.core.text import printable, printable_document
from colonnade.methods.base import Unit
from colonnade.methods.job import Job
from colonnade.methods.job import job_id as name_of
from colonnade.pki.authority import Credentials
from colonnade.pki.identity import Identity
from colonnade.v1 import job_pb2, jobs_pb2
from colonnade.v1.jobs_pb2_grpc import JobServiceStub
from colonnade.wire.channels import claim, tls_of
from colonnade.wire.jobspec import feature_from_proto, job_to_bytes
from colonnade.wire.limits import client_options, require_loopback
from colonnade.wire.notes import unused_note
from colonnade.wire.session import ENDINGS
from colonnade.wire.status import error_from_call

_CALL_S = 30.0


@dataclass(frozen=True, slots=True)
class PartyView:
    """A party in a job's progress."""

    party: str
    attached: bool
    accepted: bool
    awaited: bool
    spent_units: int
    max_units: int
    payload_bytes: int
    features_used: int | None = None  # by the finished model; None in a job over clients
    refusal: str = ""  # why it refused the job, if it did


@dataclass(frozen=True, slots=True)
class JobView:
    """Where a job stands."""

    job_id: str
    name: str
    state: str
    reason: str
    rounds_done: int
    rounds: int
    submitted_at: float
    ended_at: float
    submitted_by: str
    parties: tuple[PartyView, ...]
    over_clients: bool = False  # then a party's spending is that of its client that paid most

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of who paid and who took no part."""
        refused = (
            f"{each.party} refused the job ({each.refusal}); it took no part"
            for each in self.parties
            if each.refusal and self.over_clients  # another job fails of it, and says why
        )
        unused = (
            unused_note(each.party, each.spent_units)
            for each in self.parties
            if each.features_used == 0 and each.spent_units
        )
        return (*refused, *unused)

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ENDINGS


@dataclass(frozen=True, slots=True)
class PartyOffer:
    """What an enrolled party can bring to a job, with the bounds to use."""

    party: str
    attached: bool
    dataset: str
    population: int  # how many its table holds, in its unit of privacy
    features: dict[str, Bounds]
    fills: dict[str, float]  # of the features: what stands for a missing value, as declared
    label: tuple[str, Bounds] | None
    cap_units: int
    used_units: int
    unit: Unit = Unit.RECORD  # whom its ledger's accounts protect
    told_at: float = 0.0  # when it told its budget, in Unix seconds of the coordinator's clock
    bounds_units: int = 0  # what it paid for bounds of these columns; part of what it used
    alignment: str = ""  # what the order of its rows follows: an alignment, a roster, or nothing
    align_people: int = 0  # the most people whom it lets an alignment list
    ledger_key: bytes = b""  # signs its messages in an alignment

    @property
    def left_units(self) -> int:
        """What a job may still cost the party."""
        return max(0, self.cap_units - self.used_units)

    @property
    def clients(self) -> int:
        """How many clients it has for a job over clients: an undivided table is one."""
        return self.population if self.unit is Unit.CLIENT else 1


class Client:
    """Talks with one coordinator; every call has a deadline."""

    def __init__(
        self,
        address: str,
        credentials: Credentials | None,
        *,
        identity: Identity | None = None,
        timeout_s: float = _CALL_S,
    ) -> None:
        self._address, self._timeout_s = address, timeout_s
        self._metadata = claim(identity) if credentials is None else None
        if credentials is None:
            require_loopback(address)
            self._channel = grpc.insecure_channel(address, options=client_options())
        else:
            tls = tls_of(credentials)
            self._channel = grpc.secure_channel(address, tls, options=client_options())
        self._stub = JobServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._channel.close()

    def submit(self, job: Job | bytes, *, again: bool = False) -> str:
        """Submit a job, or the bytes of one, and return its name.

        A question that was asked before, and cost something, is a `DuplicateJob` unless it is asked
        ``again`` on purpose; the same bytes are the same job and cost nothing.
        """
        spec = job if isinstance(job, bytes) else job_to_bytes(job)
        request = jobs_pb2.SubmitJobRequest(spec=spec, again=again)
        with self._translated():
            name = self._stub.SubmitJob(request, **self._options).job_id
        if name != name_of(spec):
            raise BadMessage("the coordinator gave the job another name than its specification's")
        return name

    def jobs(self, limit: int = 0) -> list[JobView]:
        """Return jobs, newest first."""
        with self._translated():
            found = self._stub.ListJobs(jobs_pb2.ListJobsRequest(limit=limit), **self._options)
        return [_job_view(job) for job in found.jobs]

    def show(self, job_id: str) -> tuple[JobView, bytes]:
        """Return where a job stands, and its specification as submitted."""
        request = jobs_pb2.GetJobRequest(job_id=job_id)
        with self._translated():
            found = self._stub.GetJob(request, **self._options)
        return _job_view(found.job), found.spec

    def watch(self, job_id: str) -> Iterator[JobView]:
        """Yield where a job stands, at every change, until it has ended."""
        request = jobs_pb2.WatchJobRequest(job_id=job_id)
        with self._translated():
            # Without a deadline: a job takes as long as it takes; keepalive notices a dead peer.
            for response in self._stub.WatchJob(request, metadata=self._metadata):
                yield _job_view(response.job)

    def cancel(self, job_id: str) -> JobView:
        """Stop a job."""
        request = jobs_pb2.CancelJobRequest(job_id=job_id)
        with self._translated():
            return _job_view(self._stub.CancelJob(request, **self._options).job)

    def report(self, job_id: str) -> dict[str, Any]:
        """Return a job's report."""
        request = jobs_pb2.GetReportRequest(job_id=job_id)
        with self._translated():
            found = self._stub.GetReport(request, **self._options)
        return _document(found.report_json)

    def solve(self, job_id: str, penalty: str, **numbers: float) -> dict[str, Any]:
        """Return the model of a job that released moments, under another penalty.

        ``numbers`` are those of ``strength``, ``mix``, ``radius``, ``low`` and ``high`` that the
        penalty has. It is computed from releases and costs nothing more.
        """
        request = jobs_pb2.SolveJobRequest(job_id=job_id, penalty=penalty, **numbers)
        with self._translated():
            found = self._stub.SolveJob(request, **self._options)
        return _document(found.model_json)

    def parties(self) -> list[PartyOffer]:
        """Return the enrolled parties and what they offer."""
        with self._translated():
            found = self._stub.ListParties(jobs_pb2.ListPartiesRequest(), **self._options)
        try:
            return [_offer(party) for party in found.parties]
        except ValueError as error:
            raise BadMessage(f"the coordinator shows an offer that cannot be: {error}") from None

    @property
    def _options(self) -> Any:
        return {"timeout": self._timeout_s, "metadata": self._metadata}

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            raise error_from_call(error, self._address) from None


def _document(text: str) -> dict[str, Any]:
    """Return a coordinator's document; its texts end up on terminals."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadMessage("the coordinator sent a document that cannot be read")
    made: dict[str, Any] = printable_document(found)
    return made


def _state(number: int) -> str:
    """Return the name of a state, also of one that this program does not know."""
    if number not in jobs_pb2.JobState.values():
        return "unknown"
    return jobs_pb2.JobState.Name(number).removeprefix("JOB_STATE_").lower()


def _job_view(job: jobs_pb2.JobStatus) -> JobView:
    """Decode where a job stands; what a coordinator says is made safe to print."""
    return JobView(
        job_id=printable(job.job_id),
        name=printable(job.name),
        state=_state(job.state),
        reason=printable(job.reason),
        rounds_done=job.rounds_done,
        rounds=job.rounds,
        submitted_at=job.submitted_at,
        ended_at=job.ended_at,
        submitted_by=printable(job.submitted_by),
        parties=tuple(
            PartyView(
                printable(party.party),
                party.attached,
                party.accepted,
                party.awaited,
                party.spent_units,
                party.max_units,
                party.payload_bytes,
                party.features_used if party.HasField("features_used") else None,
                party.refusal,
            )
            for party in job.parties
        ),
        over_clients=job.unit == job_pb2.UNIT_CLIENT,
    )


def _offer(party: jobs_pb2.PartyStatus) -> PartyOffer:
    return PartyOffer(
        party=printable(party.party),
        attached=party.attached,
        dataset=printable(party.dataset),
        population=party.population,
        features=dict(map(feature_from_proto, party.features)),
        fills={feature.name: feature.fill for feature in party.features},
        label=feature_from_proto(party.label) if party.HasField("label") else None,
        cap_units=party.cap_units,
        used_units=party.used_units,
        unit=Unit.CLIENT if party.unit == job_pb2.UNIT_CLIENT else Unit.RECORD,
        told_at=party.told_at,
        bounds_units=party.bounds_units,
        alignment=printable(party.alignment),
        align_people=party.align_people,
        ledger_key=party.ledger_key,
    )
