"""A coordinator's process: opens its store, listens, serves until told to stop."""

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import grpc

from colonnade.core.errors import BadInput, ColonnadeError, StoreFailed
from colonnade.pki.authority import Credentials, load_credentials
from colonnade.server.api.attendance import Attendance
from colonnade.server.api.auth import Authenticator, caller_of
from colonnade.server.api.operators import JobServicer
from colonnade.server.api.parties import FederationServicer
from colonnade.server.api.renewal import Renewals
from colonnade.server.config import CoordinatorConfig
from colonnade.server.credentials import LiveCredentials
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.sessions import OpenSessions
from colonnade.server.engine.worker import Worker
from colonnade.server.metrics import readings
from colonnade.server.store.base import Store
from colonnade.server.store.pulse import Pulse
from colonnade.server.store.sql import Database
from colonnade.v1.federation_pb2_grpc import add_FederationServiceServicer_to_server
from colonnade.v1.jobs_pb2_grpc import add_JobServiceServicer_to_server
from colonnade.wire.limits import MAX_CALLS, server_options, split_address
from colonnade.wire.monitoring import monitored
from colonnade.wire.readings import NOWHERE, Addresses, Reading
from colonnade.wire.status import Statuses

logger = logging.getLogger(__name__)
_TICK_S = 1.0
_GRACE_S = 5.0
_WATCH_S = 2.0
_NONE_RENEWED = Renewals()


@dataclass(slots=True)
class Serving:
    """A server with its engine, not started yet."""

    server: "grpc.aio.Server"
    port: int
    engine: Coordinator
    worker: Worker
    board: OpenSessions
    monitoring: Addresses = NOWHERE
    credentials: LiveCredentials | None = None
    pulse: Pulse | None = None  # where other processes share the store
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until ``stop`` is set or the store fails."""
        await self.server.start()
        tasks = [
            asyncio.create_task(self.worker.run()),
            asyncio.create_task(self._tick()),
            asyncio.create_task(_wait(stop)),
        ]
        if self.pulse is not None:
            self.pulse.start()
            tasks.append(asyncio.create_task(self._collect()))
        if self.monitoring.any:
            tasks.append(asyncio.create_task(self._watch()))
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        self.board.end_all()
        await self.server.stop(_GRACE_S if stop.is_set() else 0)
        if self.pulse is not None:
            await self._leave()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.worker.close()
        for task in tasks:  # the worker's end before those that follow from it
            if task in done and (error := task.exception()) is not None:
                raise error

    async def _watch(self) -> None:
        """Show health and metrics while this runs; readings are made where the engine works."""
        latest: Sequence[Reading] = ()
        async with monitored(self.monitoring, lambda: latest) as monitor:
            while True:
                latest = await self.worker.read(lambda: readings(self.engine, self.credentials))
                monitor.ready(self.pulse is None or self.pulse.alive)
                await asyncio.sleep(_WATCH_S)

    async def _collect(self) -> None:
        """Take what other processes leave, as soon as there is a word of it."""
        while True:
            await self.woken.wait()
            self.woken.clear()
            await self.worker.do(self.engine.collect)

    async def _leave(self) -> None:
        """Let others take over at once; a process that cannot is noticed by its heartbeat."""
        if self.pulse is not None:
            self.pulse.stop()
        self.worker.stop_waiting()
        with suppress(ColonnadeError):
            await self.worker.do(self.engine.leave)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            await self.worker.do(self.engine.tick)


async def _wait(stop: asyncio.Event) -> None:
    await stop.wait()


def create_server(
    store: Store,
    authenticator: Authenticator,
    *,
    address: str,
    credentials: Credentials | LiveCredentials | None,
    options: list[tuple[str, int]] | None = None,
    monitoring: Addresses = NOWHERE,
    renewals: Renewals = _NONE_RENEWED,
    **engine_options: Any,
) -> Serving:
    """Return a coordinator on ``address``, unstarted, and the port it has; port 0 takes any."""
    engine = Coordinator(store, authenticator.federation, **engine_options)
    board, attendance = OpenSessions(), Attendance()
    worker = Worker(engine, store, board.deliver)
    server = grpc.aio.server(
        interceptors=[Statuses(lambda code, context: attendance.failed(code, caller_of(context)))],
        options=options or server_options(),
        maximum_concurrent_rpcs=MAX_CALLS,
        compression=grpc.Compression.NoCompression,
    )
    federation = FederationServicer(engine, worker, board, authenticator, attendance, renewals)
    jobs = JobServicer(
        engine,
        store,
        worker=worker,
        board=board,
        authenticator=authenticator,
        attendance=attendance,
    )
    add_FederationServiceServicer_to_server(federation, server)
    add_JobServiceServicer_to_server(jobs, server)
    live = LiveCredentials(credentials) if isinstance(credentials, Credentials) else credentials
    port = _bind(server, address, live)
    serving = Serving(server, port, engine, worker, board, monitoring, live)
    if isinstance(store, Database) and store.peers is not None:
        serving.pulse = _pulse(serving, store, store.peers.process)
    return serving


def _pulse(serving: Serving, store: Database, process: str) -> Pulse:
    """Return the heartbeat of a process among several; its notifications reach the event loop."""
    loop = asyncio.get_running_loop()

    def woken() -> None:
        loop.call_soon_threadsafe(serving.woken.set)

    def changed(job_id: str) -> None:
        loop.call_soon_threadsafe(serving.board.deliver, [], {job_id})

    return Pulse(store.engine, process, woken, changed)


def _bind(server: "grpc.aio.Server", address: str, credentials: LiveCredentials | None) -> int:
    try:
        if credentials is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, credentials.server_credentials())
    except RuntimeError:
        raise BadInput(f"cannot listen on {address}; is the port taken?") from None


async def serve(config: CoordinatorConfig, ready: Callable[[str], None]) -> None:
    """Run a coordinator until SIGTERM or SIGINT; SIGHUP takes up certificate and denylist anew."""
    credentials = load_credentials(config.credentials) if config.credentials else None
    federation = credentials.identity.federation if credentials else config.federation
    authenticator = Authenticator(federation, config.denylist, insecure=credentials is None)
    live = None
    if credentials is not None:
        live = LiveCredentials(credentials, config.credentials, config.denylist)
        live.warn()
    store = Database(config.database)
    try:
        serving = create_server(
            store,
            authenticator,
            address=config.listen,
            credentials=live,
            renewals=Renewals(config.renewal_authority, config.renewal_days),
            options=server_options(
                connection_age_s=config.connection_age_s,
                handshake_timeout_s=config.handshake_timeout_s,
            ),
            monitoring=config.monitoring,
        )
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        if live is not None:
            loop.add_signal_handler(signal.SIGHUP, live.reload)
        host, _ = split_address(config.listen)
        running = asyncio.create_task(serving.run(stop))
        ready(f"{host}:{serving.port}")
        await running
    except ColonnadeError:
        raise
    except Exception as error:
        logger.exception("coordinator_failed")
        raise StoreFailed(f"the coordinator failed ({type(error).__name__}); see the log") from None
    finally:
        store.close()
