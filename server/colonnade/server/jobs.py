"""The calls that operators make: decode, call the engine, encode."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, TypeAlias

import grpc

from colonnade.core.errors import PolicyRefused, Unreachable
from colonnade.server.callers import Caller, Callers
from colonnade.server.engine import Coordinator
from colonnade.server.progress import find_job, job_status, party_status, run_of
from colonnade.server.run import Run
from colonnade.server.store import Store
from colonnade.server.summary import report_of, solve_again
from colonnade.server.switchboard import Switchboard
from colonnade.server.worker import Worker
from colonnade.v1 import jobs_pb2 as pb
from colonnade.v1 import jobs_pb2_grpc
from colonnade.wire.identity import PARTY

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_MOST_JOBS = 100
# A watcher hears at most so often; it always hears the end.
_WATCH_S = 0.1
_RECHECK_S = 1.0
_ENDED = (pb.JOB_STATE_FINISHED, pb.JOB_STATE_FAILED, pb.JOB_STATE_CANCELLED)


class JobServicer(jobs_pb2_grpc.JobServiceServicer):
    """Serves operators, and parties that look at their own jobs."""

    def __init__(
        self,
        engine: Coordinator,
        store: Store,
        *,
        worker: Worker,
        board: Switchboard,
        callers: Callers,
    ) -> None:
        self._engine, self._store, self._worker = engine, store, worker
        self._board, self._callers = board, callers

    async def SubmitJob(
        self, request: pb.SubmitJobRequest, context: Context
    ) -> pb.SubmitJobResponse:
        """Take a job."""
        by = self._callers.operator(context).identity.uri
        job_id = await self._worker.do(lambda: self._engine.submit(request.spec, by))
        return pb.SubmitJobResponse(job_id=job_id)

    async def ListJobs(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:
        """List jobs."""
        caller = self._callers.anyone(context)
        limit = min(request.limit or _MOST_JOBS, _MOST_JOBS)

        def look() -> list[pb.JobStatus]:
            runs = (run_of(self._engine, self._store, row) for row in self._store.jobs()[:limit])
            return [job_status(self._engine, run) for run in runs if _visible(run, caller)]

        return pb.ListJobsResponse(jobs=await self._worker.read(look))

    async def GetJob(self, request: pb.GetJobRequest, context: Context) -> pb.GetJobResponse:
        """Show a job."""
        caller = self._callers.anyone(context)
        status, run = await self._look(request.job_id, caller)
        return pb.GetJobResponse(job=status, spec=run.row.spec)

    async def WatchJob(
        self, request: pb.WatchJobRequest, context: Context
    ) -> AsyncIterator[pb.WatchJobResponse]:
        """Follow a job until it ends."""
        caller = self._callers.anyone(context)
        status, run = await self._look(request.job_id, caller)
        job_id = run.row.job_id
        event = self._board.watch(job_id)
        try:
            while True:
                event.clear()
                self._callers.recheck(caller)
                status, _ = await self._look(job_id, caller)
                yield pb.WatchJobResponse(job=status)
                if status.state in _ENDED:
                    return
                await self._changed(event, caller)
                await asyncio.sleep(_WATCH_S)
        finally:
            self._board.unwatch(job_id, event)

    async def CancelJob(
        self, request: pb.CancelJobRequest, context: Context
    ) -> pb.CancelJobResponse:
        """Stop a job."""
        caller = self._callers.operator(context)
        _, run = await self._look(request.job_id, caller)
        job_id = run.row.job_id
        await self._worker.do(lambda: self._engine.cancel(job_id, caller.identity.uri))
        status, _ = await self._look(job_id, caller)
        return pb.CancelJobResponse(job=status)

    async def GetReport(
        self, request: pb.GetReportRequest, context: Context
    ) -> pb.GetReportResponse:
        """Return a job's report."""
        caller = self._callers.anyone(context)
        _, run = await self._look(request.job_id, caller)
        await self._worker.do(self._engine.settle)  # so that the store has all that it counts
        report = await self._worker.read(lambda: report_of(self._engine, self._store, run))
        return pb.GetReportResponse(report_json=json.dumps(report))

    async def SolveJob(self, request: pb.SolveJobRequest, context: Context) -> pb.SolveJobResponse:
        """Solve a job again from its releases."""
        caller = self._callers.anyone(context)
        _, run = await self._look(request.job_id, caller)
        names = ("strength", "mix", "radius", "low", "high")
        given = {name: getattr(request, name) for name in names if request.HasField(name)}
        model = await self._worker.read(
            lambda: solve_again(self._engine, run, request.penalty, given)
        )
        return pb.SolveJobResponse(model_json=json.dumps(model))

    async def ListParties(
        self, request: pb.ListPartiesRequest, context: Context
    ) -> pb.ListPartiesResponse:
        """List parties and what they offer."""
        self._callers.anyone(context)

        def look() -> list[pb.PartyStatus]:
            rows = sorted(self._engine.parties.values(), key=lambda row: row.name)
            return [party_status(self._engine, row) for row in rows if row.offer]

        return pb.ListPartiesResponse(parties=await self._worker.read(look))

    async def _changed(self, event: asyncio.Event, caller: Caller) -> None:
        """Wait until a job changes, and look at the caller's certificate meanwhile."""
        while not event.is_set():
            self._callers.recheck(caller)
            with suppress(TimeoutError):
                async with asyncio.timeout(_RECHECK_S):
                    await event.wait()
        if self._board.stopping:
            raise Unreachable("the coordinator is stopping; the job goes on when it is back")

    async def _look(self, prefix: str, caller: Caller) -> tuple[pb.JobStatus, Run]:
        def look() -> tuple[pb.JobStatus, Run]:
            run = run_of(self._engine, self._store, find_job(self._engine, self._store, prefix))
            if not _visible(run, caller):
                raise PolicyRefused(f"{caller.identity.uri} is not in this job")
            return job_status(self._engine, run), run

        return await self._worker.read(look)


def _visible(run: Run, caller: Caller) -> bool:
    return caller.identity.role != PARTY or run.has(caller.identity.name)
