"""A client of a coordinator: plan, submit, retry, list, watch, show, cancel, report, evaluate."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from colonnade.client.align_builder import AlignOptions, author_alignment, people_in_common
from colonnade.client.builder import build_admm_job, build_job
from colonnade.client.connection import Connection, read_document
from colonnade.client.evaluate_builder import (
    EvaluateOptions,
    EvaluationPlan,
    plan_evaluation,
    submit_evaluation,
)
from colonnade.client.hub_views import CoordinatorView, coordinator_from_proto
from colonnade.client.options import AdmmOptions, JobOptions
from colonnade.client.plans import alignment_named, planned, specification
from colonnade.client.predict_builder import PredictOptions, author_prediction
from colonnade.client.results import JobDetails, JobPlan, JobReport, read_model
from colonnade.client.views import JobView, PartyOffer, finished, offers_from_proto, view_from_proto
from colonnade.core.errors import BadMessage
from colonnade.data.model import LinearModel
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.methods.job import Job
from colonnade.methods.job import job_id as name_of
from colonnade.pki.authority import Credentials
from colonnade.pki.identity import Identity
from colonnade.v1 import jobs_pb2


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
        Without TLS, the operator: the URI that a certificate would have.
    timeout_s
        The deadline of each call; `watch` and `wait` have none.

    Examples
    --------
    Others are in `colonnade.client`.

    >>> [offer.party for offer in client.parties()]
    ['hospital', 'laboratory']
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
        self._call, self._stub = self._wire.call, self._wire.stub

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def parties(self) -> list[PartyOffer]:
        """Return the enrolled parties and what they offer."""
        found = self._call(self._stub.ListParties, jobs_pb2.ListPartiesRequest())
        return offers_from_proto(found.parties)

    def coordinator(self) -> CoordinatorView:
        """Return what the coordinator is, and which errors it has met since it started."""
        found = self._call(self._stub.GetCoordinator, jobs_pb2.GetCoordinatorRequest())
        return coordinator_from_proto(found)

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
        parties, without
            Who takes part; by default every enrolled party but those without, and `PartyAbsent` if
            one is away.
        name
            For people; by default the label.
        purpose
            What the answer is for; parties' policies and caps name purposes.
        timeout_s
            Seconds that a party may stay away before the job fails.
        """
        offers = self.parties()
        people = {} if isinstance(job, Job) else people_in_common(offers, self.alignment)
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
                people=people,
            )
        return planned(job, offers, operator=self._wire.operator, purpose=purpose, people=people)

    def alignment(self, name: str) -> tuple[AlignmentSpec, dict[str, Any]]:
        """Return a finished alignment by the beginning of its name, and its part of the report."""
        finished = (self.show(view.job_id) for view in self.jobs() if view.state == "finished")
        spec, job_id = alignment_named(finished, name)
        return spec, self.report(job_id).document["alignment"]

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

        The arguments are those of `plan`, but that a round closes after ``round_timeout_s`` seconds
        if enough clients have answered, and may stay open for ``timeout_s``.
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
        return planned(job, offers, operator=self._wire.operator, purpose=purpose)

    def plan_alignment(
        self, options: AlignOptions, *, purpose: str = "", **arguments: Any
    ) -> JobPlan:
        """Return what an alignment of parties' people would do and cost; see `author_alignment`."""
        job = author_alignment(offers := self.parties(), options, **arguments)
        return planned(job, offers, operator=self._wire.operator, purpose=purpose)

    def submit(
        self,
        job: JobPlan | JobOptions | Job | bytes | None = None,
        *,
        again: bool = False,
        **arguments: Any,
    ) -> str:
        """Submit a job and return its name.

        A question that was asked before, and cost something, is a `DuplicateJob` unless it is asked
        ``again`` on purpose; the same bytes are the same job and cost nothing. ``job`` is a plan,
        or what `plan` takes: options with its other arguments, a job, or bytes.
        """
        if job is None or isinstance(job, JobOptions):
            job = self.plan(job, **arguments)
        elif arguments:
            raise ValueError("only options are planned; a job is submitted as it is")
        who = self._wire.operator
        spec = job.spec if isinstance(job, JobPlan) else specification(job, operator=who)
        request = jobs_pb2.SubmitJobRequest(spec=spec, again=again)
        name = self._call(self._stub.SubmitJob, request).job_id
        if name != name_of(spec):
            raise BadMessage("the coordinator gave the job another name than its specification's")
        return name

    def submit_admm(
        self, options: AdmmOptions | None = None, *, again: bool = False, **arguments: Any
    ) -> str:
        """Submit a job over the parties' clients; the arguments are those of `plan_admm`."""
        return self.submit(self.plan_admm(options, **arguments), again=again)

    def retry(self, job_id: str) -> str:
        """Submit a job again that failed or was cancelled; it spends anew, under a new name."""
        return self.submit(self.show(job_id).again(), again=True)

    def plan_evaluation(
        self, job_id: str, options: EvaluateOptions | None = None, *, timeout_s: int = 3600
    ) -> EvaluationPlan:
        """Return what it costs to measure a job's model on held-out people."""
        return plan_evaluation(self, job_id, options or EvaluateOptions(), timeout_s=timeout_s)

    def evaluate(self, plan: EvaluationPlan, *, run: str | None = None, again: bool = False) -> str:
        """Have those people scored, then measure; return the name of the job that measures.

        They are scored as by `predict`, which policies must grant, unless finished ``run`` did.
        The fitted job's report has the result. A second is a `DuplicateJob`, unless ``again``.
        """
        return submit_evaluation(self, plan, run, again=again)

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
        differentially private: every party's policy must grant it. ``model`` is that of a finished
        job over columns, or the job's name; ``rows`` are numbers in the aligned tables, from 0.
        """
        expected = None if isinstance(model, str) else model
        trained = self.show(model if isinstance(model, str) else model.job_id)
        releases, offers = self.releases(trained.view.job_id), self.parties()
        job = author_prediction(
            trained.spec, releases, rows, options, offers=offers, expected=expected
        )
        return self.submit(job, again=again)

    def releases(self, job_id: str) -> Sequence[jobs_pb2.PartyReleases]:
        """Return all that the parties of a finished job released, with their ledgers' receipts."""
        request = jobs_pb2.GetReleasesRequest(job_id=job_id)
        return self._call(self._stub.GetReleases, request).parties

    def jobs(self, limit: int = 0) -> list[JobView]:
        """Return jobs, newest first; at most ``limit``, if it is not 0."""
        found = self._call(self._stub.ListJobs, jobs_pb2.ListJobsRequest(limit=limit))
        return [view_from_proto(job) for job in found.jobs]

    def show(self, job_id: str) -> JobDetails:
        """Return where a job stands, and its specification as submitted."""
        found = self._call(self._stub.GetJob, jobs_pb2.GetJobRequest(job_id=job_id))
        return JobDetails(view_from_proto(found.job), found.spec)

    def watch(self, job_id: str) -> Iterator[JobView]:
        """Yield where a job stands, at every change, until it has ended."""
        request = jobs_pb2.WatchJobRequest(job_id=job_id)
        with self._wire.translated():
            # Without a deadline: a job takes as long as it takes; keepalive notices a dead peer.
            for response in self._wire.stub.WatchJob(request, metadata=self._wire.metadata):
                yield view_from_proto(response.job)

    def wait(self, job_id: str, on_change: Callable[[JobView], None] | None = None) -> JobView:
        """Wait until a job has finished, telling every change; `JobEnded` if it did not finish."""
        last = None
        for last in self.watch(job_id):
            if on_change is not None:
                on_change(last)
        return finished(last)

    def cancel(self, job_id: str) -> JobView:
        """Stop a job; what was charged stays charged."""
        found = self._call(self._stub.CancelJob, jobs_pb2.CancelJobRequest(job_id=job_id))
        return view_from_proto(found.job)

    def report(self, job_id: str) -> JobReport:
        """Return a job's report."""
        found = self._call(self._stub.GetReport, jobs_pb2.GetReportRequest(job_id=job_id))
        return JobReport(read_document(found.report_json))

    def solve(self, job_id: str, penalty: str, **numbers: float) -> LinearModel:
        """Return the model of a job that released moments, under another penalty.

        It is computed from releases and costs nothing more. ``penalty`` is ``"ball"`` (what the job
        itself solves), ``"l1"``, ``"ridge"``, ``"elastic-net"`` or ``"box"``; ``numbers`` are those
        of ``strength``, ``mix``, ``radius``, ``low`` and ``high`` that it has, in standard
        deviations.
        """
        request = jobs_pb2.SolveJobRequest(job_id=job_id, penalty=penalty, **numbers)
        found = self._call(self._stub.SolveJob, request)
        return read_model(read_document(found.model_json))
