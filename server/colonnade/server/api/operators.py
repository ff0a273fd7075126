"""The calls that operators make: decode, call the engine, encode."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any, TypeAlias

import grpc

from colonnade.core.errors import PolicyRefused, Unreachable
from colonnade.pki.identity import PARTY
from colonnade.server.api.attendance import Attendance
from colonnade.server.api.auth import Authenticator, Caller
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.progress import (
    find_job,
    party_status,
    releases_of,
    run_of,
    status_of,
)
from colonnade.server.engine.rounds import Run
from colonnade.server.engine.sessions import OpenSessions
from colonnade.server.engine.worker import Worker
from colonnade.server.results import report_of, solve_again
from colonnade.server.store.base import JobRow, Store
from colonnade.v1 import jobs_pb2 as pb
from colonnade.v1 import jobs_pb2_grpc

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_MAX_JOBS = 100
# A watcher is sent updates at most so often, and always the last one.
_WATCH_S = 0.1
_RECHECK_S = 1.0
# So long an operator waits until the process that runs a job has cancelled it.
_CANCEL_S = 15.0
_ENDED = (pb.JOB_STATE_FINISHED, pb.JOB_STATE_FAILED, pb.JOB_STATE_CANCELLED)


class JobServicer(jobs_pb2_grpc.JobServiceServicer):
    """Serves operators, and parties that look at their own jobs."""

    def __init__(
        self,
        engine: Coordinator,
        store: Store,
        *,
        worker: Worker,
        board: OpenSessions,
        authenticator: Authenticator,
        attendance: Attendance,
    ) -> None:
        self._engine, self._store, self._worker = engine, store, worker
        self._board, self._authenticator, self._attendance = board, authenticator, attendance

    async def SubmitJob(
        self, request: pb.SubmitJobRequest, context: Context
    ) -> pb.SubmitJobResponse:
        """Take a job."""
        caller = self._authenticator.operator(context)
        by, proven = caller.identity.uri, caller.certificate is not None
        job_id = await self._worker.do(
            lambda: self._engine.submit(request.spec, by, again=request.again, named=proven)
        )
        return pb.SubmitJobResponse(job_id=job_id)

    async def ListJobs(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:
        """List jobs."""
        caller = self._authenticator.anyone(context)
        limit = min(request.limit or _MAX_JOBS, _MAX_JOBS)

        def look() -> list[pb.JobStatus]:
            rows = self._store.jobs()[:limit]
            found = (status_of(self._engine, self._store, row) for row in rows)
            return [status for status in found if _visible(status, caller)]

        return pb.ListJobsResponse(jobs=await self._worker.read(look))

    async def GetJob(self, request: pb.GetJobRequest, context: Context) -> pb.GetJobResponse:
        """Show a job."""
        caller = self._authenticator.anyone(context)
        status, row = await self._look(request.job_id, caller)
        return pb.GetJobResponse(job=status, spec=row.spec)

    async def WatchJob(
        self, request: pb.WatchJobRequest, context: Context
    ) -> AsyncIterator[pb.WatchJobResponse]:
        """Follow a job until it ends."""
        caller = self._authenticator.anyone(context)
        status, row = await self._look(request.job_id, caller)
        job_id = row.job_id
        event = self._board.watch(job_id)
        try:
            while True:
                event.clear()
                self._authenticator.recheck(caller)
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
        caller = self._authenticator.operator(context)
        _, row = await self._look(request.job_id, caller)
        job_id = row.job_id
        event = self._board.watch(job_id)
        try:
            await self._worker.do(lambda: self._engine.cancel(job_id, caller.identity.uri))
            status, _ = await self._look(job_id, caller)
            if status.state not in _ENDED:  # another process runs the job, and was told
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CANCEL_S):
                        while status.state not in _ENDED:
                            await event.wait()
                            event.clear()
                            status, _ = await self._look(job_id, caller)
        finally:
            self._board.unwatch(job_id, event)
        return pb.CancelJobResponse(job=status)

    async def GetReport(
        self, request: pb.GetReportRequest, context: Context
    ) -> pb.GetReportResponse:
        """Return a job's report."""
        caller = self._authenticator.anyone(context)
        _, row = await self._look(request.job_id, caller)
        await self._worker.do(self._engine.settle)  # so that the store has all that it counts

        def look() -> Mapping[str, Any]:
            return report_of(self._engine, self._store, self._run(row.job_id))

        report = await self._worker.read(look)
        return pb.GetReportResponse(report_json=json.dumps(report))

    async def SolveJob(self, request: pb.SolveJobRequest, context: Context) -> pb.SolveJobResponse:
        """Solve a job again from its releases."""
        caller = self._authenticator.anyone(context)
        _, row = await self._look(request.job_id, caller)
        names = ("strength", "mix", "radius", "low", "high")
        given = {name: getattr(request, name) for name in names if request.HasField(name)}

        def look() -> Mapping[str, Any]:
            return solve_again(self._engine, self._run(row.job_id), request.penalty, given)

        model = await self._worker.read(look)
        return pb.SolveJobResponse(model_json=json.dumps(model))

    async def GetReleases(
        self, request: pb.GetReleasesRequest, context: Context
    ) -> pb.GetReleasesResponse:
        """Return all that a finished job's parties released."""
        caller = self._authenticator.anyone(context)
        _, row = await self._look(request.job_id, caller)
        found = await self._worker.read(lambda: releases_of(self._store, row))
        return pb.GetReleasesResponse(parties=found)

    async def ListParties(
        self, request: pb.ListPartiesRequest, context: Context
    ) -> pb.ListPartiesResponse:
        """List parties and what they offer."""
        self._authenticator.anyone(context)

        def look() -> list[pb.PartyStatus]:
            rows = sorted(self._engine.parties.values(), key=lambda row: row.name)
            return [party_status(self._engine, row) for row in rows]

        parties = map(self._attendance.describe, await self._worker.read(look))
        return pb.ListPartiesResponse(parties=parties)

    async def GetCoordinator(
        self, request: pb.GetCoordinatorRequest, context: Context
    ) -> pb.GetCoordinatorResponse:
        """Describe what runs here, and which errors it has met."""
        self._authenticator.operator(context)
        return pb.GetCoordinatorResponse(
            federation=self._authenticator.federation,
            program=version("colonnade"),
            started_at=self._attendance.started_at,
            time=self._attendance.clock(),
            errors=self._attendance.errors,
        )

    async def _changed(self, event: asyncio.Event, caller: Caller) -> None:
        """Wait until a job changes, and look at the caller's certificate meanwhile."""
        while not event.is_set():
            self._authenticator.recheck(caller)
            with suppress(TimeoutError):
                async with asyncio.timeout(_RECHECK_S):
                    await event.wait()
        if self._board.stopping:
            raise Unreachable("the coordinator is stopping; the job goes on when it is back")

    async def _look(self, prefix: str, caller: Caller) -> tuple[pb.JobStatus, JobRow]:
        def look() -> tuple[pb.JobStatus, JobRow]:
            row = find_job(self._engine, self._store, prefix)
            status = status_of(self._engine, self._store, row)
            if not _visible(status, caller):
                raise PolicyRefused(f"{caller.identity.uri} is not in this job")
            return status, row

        return await self._worker.read(look)

    def _run(self, job_id: str) -> Run:
        """Return a job with its state; it may have ended since somebody looked."""
        return run_of(self._engine, self._store, find_job(self._engine, self._store, job_id))


def _visible(status: pb.JobStatus, caller: Caller) -> bool:
    parties = [progress.party for progress in status.parties]
    return caller.identity.role != PARTY or caller.identity.name in parties
