"""A client of a coordinator: plan, submit, list, watch, show, cancel, report, solve."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from colonnade.client.align_builder import AlignOptions, author_alignment, people_told
from colonnade.client.builder import build_admm_job, build_job, knows_presence
from colonnade.client.connection import Connection, read_document
from colonnade.client.description import describe
from colonnade.client.hub_views import CoordinatorView, coordinator_from_proto
from colonnade.client.options import AdmmOptions, JobOptions
from colonnade.client.predict_builder import PredictOptions, author_prediction
from colonnade.client.results import JobDetails, JobPlan, JobReport, read_model
from colonnade.client.views import JobView, PartyOffer, offer_from_proto, view_from_proto
from colonnade.core.errors import BadInput, BadMessage, JobEnded, StoreFailed
from colonnade.data.model import LinearModel
from colonnade.methods.alignment.codec import run_name
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.methods.job import Job
from colonnade.methods.job import job_id as name_of
from colonnade.pki.authority import Credentials
from colonnade.pki.identity import Identity
from colonnade.v1 import jobs_pb2
from colonnade.wire.jobspec import job_from_bytes, job_to_bytes


class Client:
    """An operator's connection to one coordinator.

    Every call has a deadline, and every error is one of `colonnade.core.errors`. A job is named by
    the name that `submit` returned, or by its beginning.

    Parameters
    ----------
    address
        ``host:port`` of the coordinator.
    credentials
        The operator's key and certificate, or the folder that they are in. None connects without
        TLS, which only loopback addresses allow.
    identity
        Without TLS, who asks: the URI that a certificate would have.
    timeout_s
        The deadline of each call; `watch` and `wait` have none.

    Examples
    --------
    ``client`` is ``Client("hub.example.org:7443", "pki")``; two parties are attached. What would a
    job do and cost?

    >>> {offer.party: offer.label[0] for offer in client.parties()}
    {'hospital': 'y', 'laboratory': 'y'}
    >>> plan = client.plan(JobOptions(epsilon=0.5, method="moments"), target="y")
    >>> plan.epsilon <= 0.5, list(plan.epsilon_by_party)
    (True, ['hospital', 'laboratory'])

    Submit it, wait, and read its report:

    >>> job_id = client.submit(plan)
    >>> client.wait(job_id).state
    'finished'
    >>> report = client.report(job_id)
    >>> report.epsilon <= 0.5, report.payload_bytes == report["uplink"]["predicted_bytes"]
    (True, True)
    >>> sorted({feature.party for feature in report.model.features})
    ['hospital', 'laboratory']

    Released moments solve other problems at no further cost:

    >>> client.solve(job_id, "ridge", strength=0.1).label.name
    'y'

    Without a plan, and looking on:

    >>> job_id = client.submit(JobOptions(epsilon=0.1), target="y", parties=["laboratory"])
    >>> [view.state for view in client.watch(job_id)][-1]
    'finished'
    >>> client.show(job_id[:12]).job.label, client.jobs(limit=1)[0].job_id == job_id
    ('y', True)
    >>> client.cancel(job_id).state  # it has ended already
    'finished'

    A job over clients; a table that is not divided among clients is one client's:

    >>> job_id = client.submit_admm(AdmmOptions(epsilon=0.2, rounds=1, sampled=2), target="y")
    >>> client.wait(job_id).over_clients
    True
    """

    def __init__(
        self,
        address: str,
        credentials: Credentials | Path | str | None = None,
        *,
        identity: Identity | str | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self._wire = Connection(address, credentials, identity=identity, timeout_s=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def parties(self) -> list[PartyOffer]:
        """Return the enrolled parties and what they offer."""
        request = jobs_pb2.ListPartiesRequest()
        found = self._wire.call(self._wire.stub.ListParties, request)
        try:
            return [offer_from_proto(party) for party in found.parties]
        except ValueError as error:
            raise BadMessage(f"the coordinator shows an offer that cannot be: {error}") from None

    def coordinator(self) -> CoordinatorView:
        """Return what the coordinator is, and which errors it has met since it started."""
        request = jobs_pb2.GetCoordinatorRequest()
        return coordinator_from_proto(self._wire.call(self._wire.stub.GetCoordinator, request))

    def plan(
        self,
        job: JobOptions | Job | bytes | None = None,
        *,
        target: str | None = None,
        parties: Sequence[str] | None = None,
        without: Sequence[str] = (),
        name: str | None = None,
        purpose: str = "",
        timeout_s: int = 3600,
    ) -> JobPlan:
        """Return what a job would do and cost; nothing is submitted.

        Parameters
        ----------
        job
            Options of a job over columns, by default ``JobOptions()``; or a job, or its bytes.
        target
            The label; needed with options.
        parties
            Who takes part; by default every enrolled party, and `PartyAbsent` if one is away.
        without
            Whom to leave out of the default.
        name
            For people; by default the label.
        purpose
            What the answer is for; parties' policies and caps name purposes.
        timeout_s
            Seconds that a party may stay away before the job fails.
        """
        offers = self.parties()
        if job is None or isinstance(job, JobOptions):
            if target is None:
                raise ValueError("a plan from options needs a target")
            job = build_job(
                offers,
                job or JobOptions(),
                target=target,
                parties=parties,
                without=without,
                name=name,
                timeout_s=timeout_s,
                people=self._people(offers),
            )
            job = self._asked(job, purpose)
        elif isinstance(job, Job):
            job = self._asked(job, purpose or job.purpose)
        return _plan(job, offers)

    def alignment(self, name: str) -> tuple[AlignmentSpec, dict[str, Any]]:
        """Return a finished alignment by the beginning of its name, and its part of the report."""
        for view in self.jobs():
            method = self.show(view.job_id).job.method if view.state == "finished" else None
            if isinstance(method, AlignmentJobSpec):
                spec = method.alignment
                if run_name(spec).hex().startswith(name):
                    return spec, self.report(view.job_id).document["alignment"]
        raise BadInput(f"the coordinator has finished no alignment {name[:12]!r}")

    def _people(self, offers: Sequence[PartyOffer]) -> dict[tuple[str, ...], int]:
        """Return how many people parties have in common, as the alignment of their rows told."""
        orders = {offer.alignment for offer in offers if knows_presence(offer.alignment)}
        for name in sorted(orders):
            with suppress(BadInput):  # one that this coordinator never ran
                return people_told(self.alignment(name)[1])
        return {}

    def plan_admm(
        self,
        options: AdmmOptions | None = None,
        *,
        target: str,
        parties: Sequence[str] | None = None,
        without: Sequence[str] = (),
        name: str | None = None,
        purpose: str = "",
        round_timeout_s: int = 60,
        timeout_s: int = 3600,
    ) -> JobPlan:
        """Return what a job over the parties' clients, by federated ADMM, would do and cost.

        Parameters
        ----------
        target, parties, without, name, purpose
            As for `plan`.
        round_timeout_s
            Seconds until a round closes.
        timeout_s
            Seconds that a round may stay open.
        """
        offers = self.parties()
        job = build_admm_job(
            offers,
            options or AdmmOptions(),
            target=target,
            parties=parties,
            without=without,
            name=name,
            round_timeout_s=round_timeout_s,
            timeout_s=timeout_s,
        )
        return _plan(self._asked(job, purpose), offers)

    def plan_alignment(
        self, options: AlignOptions, *, purpose: str = "", **planned: Any
    ) -> JobPlan:
        """Return what an alignment of parties' people would do and cost; see `author_alignment`."""
        offers = self.parties()
        return _plan(self._asked(author_alignment(offers, options, **planned), purpose), offers)

    def _asked(self, job: Job, purpose: str) -> Job:
        """Return a job that says what it is for and who asks."""
        try:
            return replace(job, purpose=purpose.strip(), requested_by=self._wire.asks)
        except ValueError as error:
            raise BadInput(f"no such job: {error}") from None

    def submit(
        self,
        job: JobPlan | JobOptions | Job | bytes | None = None,
        *,
        again: bool = False,
        **planned: Any,
    ) -> str:
        """Submit a job and return its name.

        A question that was asked before, and cost something, is a `DuplicateJob` unless it is asked
        ``again`` on purpose; the same bytes are the same job and cost nothing.

        Parameters
        ----------
        job
            A plan; or what `plan` takes.
        **planned
            The other arguments of `plan`, with options: ``target`` and so on.
        """
        if job is None or isinstance(job, JobOptions):
            job = self.plan(job, **planned)
        elif planned:
            raise ValueError("only options are planned; a job is submitted as it is")
        if isinstance(job, JobPlan):
            spec = job.spec
        else:
            spec = job if isinstance(job, bytes) else job_to_bytes(job)
        request = jobs_pb2.SubmitJobRequest(spec=spec, again=again)
        name = self._wire.call(self._wire.stub.SubmitJob, request).job_id
        if name != name_of(spec):
            raise BadMessage("the coordinator gave the job another name than its specification's")
        return name

    def submit_admm(
        self, options: AdmmOptions | None = None, *, again: bool = False, **planned: Any
    ) -> str:
        """Submit a job over the parties' clients, by federated ADMM, and return its name.

        Takes the arguments of `plan_admm`, and ``again`` as `submit` does.
        """
        return self.submit(self.plan_admm(options, **planned), again=again)

    def predict(
        self,
        model: LinearModel | str,
        rows: Sequence[int],
        options: PredictOptions,
        *,
        again: bool = False,
    ) -> str:
        """Have rows scored for one party, and return the name of the job that does it.

        The scores are written at the receiver; nobody else learns them, and they are not
        differentially private: every party's policy must grant it.

        Parameters
        ----------
        model
            The model of a finished job over columns, or the job's name.
        rows
            Row numbers of the aligned tables, from 0.
        """
        expected = None if isinstance(model, str) else model
        trained = self.show(model if isinstance(model, str) else model.job_id)
        job = author_prediction(
            trained.spec,
            self.releases(trained.view.job_id),
            rows,
            options,
            offers=self.parties(),
            expected=expected,
        )
        return self.submit(job, again=again)

    def releases(self, job_id: str) -> Sequence[jobs_pb2.PartyReleases]:
        """Return all that the parties of a finished job released, with their ledgers' receipts."""
        request = jobs_pb2.GetReleasesRequest(job_id=job_id)
        return self._wire.call(self._wire.stub.GetReleases, request).parties

    def jobs(self, limit: int = 0) -> list[JobView]:
        """Return jobs, newest first; at most ``limit``, if it is not 0."""
        request = jobs_pb2.ListJobsRequest(limit=limit)
        found = self._wire.call(self._wire.stub.ListJobs, request)
        return [view_from_proto(job) for job in found.jobs]

    def show(self, job_id: str) -> JobDetails:
        """Return where a job stands, and its specification as submitted."""
        request = jobs_pb2.GetJobRequest(job_id=job_id)
        found = self._wire.call(self._wire.stub.GetJob, request)
        return JobDetails(view_from_proto(found.job), found.spec)

    def watch(self, job_id: str) -> Iterator[JobView]:
        """Yield where a job stands, at every change, until it has ended."""
        request = jobs_pb2.WatchJobRequest(job_id=job_id)
        with self._wire.translated():
            # Without a deadline: a job takes as long as it takes; keepalive notices a dead peer.
            for response in self._wire.stub.WatchJob(request, metadata=self._wire.metadata):
                yield view_from_proto(response.job)

    def wait(self, job_id: str, on_change: Callable[[JobView], None] | None = None) -> JobView:
        """Wait until a job has finished; `JobEnded` if it failed or was cancelled.

        ``on_change`` is called with where the job stands, at every change.
        """
        last = None
        for last in self.watch(job_id):
            if on_change is not None:
                on_change(last)
        if last is None:
            raise StoreFailed("the coordinator said nothing of the job")
        if last.state != "finished":
            raise JobEnded(f"job {last.job_id[:12]} {last.state}: {last.reason}")
        return last

    def cancel(self, job_id: str) -> JobView:
        """Stop a job; what was charged stays charged."""
        request = jobs_pb2.CancelJobRequest(job_id=job_id)
        return view_from_proto(self._wire.call(self._wire.stub.CancelJob, request).job)

    def report(self, job_id: str) -> JobReport:
        """Return a job's report."""
        request = jobs_pb2.GetReportRequest(job_id=job_id)
        found = self._wire.call(self._wire.stub.GetReport, request)
        return JobReport(read_document(found.report_json))

    def solve(self, job_id: str, penalty: str, **numbers: float) -> LinearModel:
        """Return the model of a job that released moments, under another penalty.

        It is computed from releases and costs nothing more.

        Parameters
        ----------
        penalty
            ``"ball"`` (what the job itself solves), ``"l1"``, ``"ridge"``, ``"elastic-net"`` or
            ``"box"``.
        **numbers
            Those of ``strength``, ``mix``, ``radius``, ``low`` and ``high`` that the penalty has,
            in standard deviations.
        """
        request = jobs_pb2.SolveJobRequest(job_id=job_id, penalty=penalty, **numbers)
        found = self._wire.call(self._wire.stub.SolveJob, request)
        return read_model(read_document(found.model_json))


def _plan(job: Job | bytes, offers: Sequence[PartyOffer]) -> JobPlan:
    spec = job if isinstance(job, bytes) else job_to_bytes(job)
    return JobPlan(spec, describe(job_from_bytes(spec), offers))
