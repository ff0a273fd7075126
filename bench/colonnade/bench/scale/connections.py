"""``connections``: idle mTLS connections and attached parties, held while jobs run.

Live calls are an operator's, one after the other, while connections are held, sessions are open, a
job runs, strangers storm the port with handshakes that they never finish, and slow readers watch
the job and read nothing. ``rss_mb`` is the coordinator's memory at the end, ``before_rss_mb`` what
it was before anybody came.
"""

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from colonnade.bench.processes import beside, held_by
from colonnade.bench.scale.idle import IdleConnections
from colonnade.bench.scratch import say
from colonnade.bench.vertical.jobs import job_of
from colonnade.bench.vertical.speed import found_tiny
from colonnade.client import Client
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.pki.authority import (
    approve_request,
    create_request,
    install_certificate,
    load_credentials,
)
from colonnade.pki.identity import Identity
from colonnade.privacy.accounting import units_down
from colonnade.simulate.federation import FEDERATION, Federation
from colonnade.simulate.processes import Processes
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import job_pb2, jobs_pb2
from colonnade.v1.federation_pb2_grpc import FederationServiceStub
from colonnade.v1.jobs_pb2_grpc import JobServiceStub
from colonnade.wire.channels import open_channel, tls_of
from colonnade.wire.heads import head_to_proto
from colonnade.wire.limits import split_address
from colonnade.wire.session import PROTOCOL, enrolment_statement

IDLE, ATTACHED, CALLS = 10_000, 1_000, 2_000
QUICK_IDLE, QUICK_ATTACHED, QUICK_CALLS = 200, 20, 100
_STORM, _STORM_HOLD_S = 32, 0.05
_SLOW = 16
_PARTIES = 2


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Return how many were held, the 99th percentile of live calls and the memory."""
    idle, attached, calls = IDLE, ATTACHED, CALLS
    if quick:
        idle, attached, calls = QUICK_IDLE, QUICK_ATTACHED, QUICK_CALLS
    federation = found_tiny(folder / "federation", _PARTIES)
    with Processes(federation, folder / "logs") as processes, processes.client() as client:
        offers = processes.wait_for_parties(client)
        pid = processes.process("coordinator").pid
        before = held_by(pid).rss_mb
        say(f"{attached} attached parties, {idle} idle connections")
        context = _tls(federation)
        with (
            IdleConnections(federation.address, context, idle) as held,
            _attached(federation, folder / "members", attached) as sessions,
        ):
            units, rounds = units_down(1e-4), 20 if quick else 300
            job = job_of(offers, rounds=rounds, shares=0, sketch_dim=64, units=units)
            name = client.submit(job)
            with _storm(federation.address), _slow_readers(federation, name):
                took = _live_calls(client, calls)
            state = client.wait(name).state
            found = {
                "idle": held.alive(),
                "attached": sessions(),
                "p99_ms": 1e3 * float(np.quantile(took, 0.99)),
                "p50_ms": 1e3 * float(np.quantile(took, 0.5)),
                "rss_mb": held_by(pid).rss_mb,
                "before_rss_mb": before,
                "job": state,
            }
    return {"connections": found}


def _live_calls(client: Client, count: int) -> list[float]:
    took = []
    for _ in range(count):
        began = time.monotonic()
        client.coordinator()
        took.append(time.monotonic() - began)
    return took


def _tls(federation: Federation) -> ssl.SSLContext:
    folder = federation.operator_credentials
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(folder / "root.pem")
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.set_alpn_protocols(["h2"])
    return context


@contextlib.contextmanager
def _storm(address: str) -> Iterator[None]:
    """Open connections all the time that send nothing, and leave them."""

    def run(stop: threading.Event) -> None:
        while not stop.is_set():
            opened = []
            for _ in range(_STORM):
                with contextlib.suppress(OSError):
                    opened.append(socket.create_connection(split_address(address), timeout=1.0))
            stop.wait(_STORM_HOLD_S)
            for each in opened:
                each.close()

    with beside(run):
        yield


@contextlib.contextmanager
def _slow_readers(federation: Federation, name: str) -> Iterator[None]:
    """Watch a job on several connections and never read what comes."""
    credentials = tls_of(load_credentials(federation.operator_credentials))
    with contextlib.ExitStack() as stack:
        for number in range(_SLOW):
            options = [("grpc.use_local_subchannel_pool", 1), ("colonnade.number", number)]
            channel = grpc.secure_channel(federation.address, credentials, options)
            stack.enter_context(channel)
            call = JobServiceStub(channel).WatchJob(jobs_pb2.WatchJobRequest(job_id=name))
            stack.callback(call.cancel)
        yield


@contextlib.contextmanager
def _attached(federation: Federation, folder: Path, count: int) -> Iterator[Any]:
    """Attach parties that offer a table and are never asked; yield how many still are."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    members = _Members(federation, folder)
    asyncio.run_coroutine_threadsafe(members.attach(count), loop).result()
    try:
        yield members.attached
    finally:
        asyncio.run_coroutine_threadsafe(members.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Members:
    """Parties with certificates and ledgers of their own, and no table to answer from."""

    def __init__(self, federation: Federation, folder: Path) -> None:
        self._federation, self._folder = federation, folder
        self._channels: list[grpc.aio.Channel] = []
        self._calls: list[Any] = []

    async def attach(self, count: int) -> None:
        for at in range(0, count, 20):  # a few at a time
            await asyncio.gather(*map(self._attach, range(at, min(count, at + 20))))

    def attached(self) -> int:
        return sum(not call.done() for call in self._calls)

    async def close(self) -> None:
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*(channel.close() for channel in self._channels))
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _attach(self, number: int) -> None:
        name, authority = f"member-{number}", self._federation.folder / "authority"
        place, identity = self._folder / name, Identity(FEDERATION, "party", name)
        request = create_request(place, identity, ())
        chain = approve_request(authority, request, now=datetime.now(UTC))
        install_certificate(place, chain, (authority / "root.pem").read_bytes())
        ledger = memory_ledger(LedgerConfig(name, {"": 1}, simulation=True))
        ledger_id = bytes.fromhex(ledger.opened.ledger_id)
        channel = open_channel(self._federation.address, load_credentials(place))
        self._channels.append(channel)
        stub: Any = FederationServiceStub(channel)
        await stub.Enrol(
            pb.EnrolRequest(
                ledger_id=ledger_id,
                ledger_key=bytes.fromhex(ledger.opened.public_key),
                signature=ledger.sign(enrolment_statement(FEDERATION, name, ledger_id)),
            ),
            timeout=60,
        )
        hello = pb.Hello(
            protocol=PROTOCOL,
            ledger_id=ledger_id,
            offer=pb.Offer(population=1, unit=job_pb2.UNIT_RECORD, cap_units=1, dataset="0" * 32),
            head=head_to_proto(ledger.signed_head(FEDERATION)),
        )
        call = stub.Attach()
        self._calls.append(call)
        await call.write(pb.AttachRequest(hello=hello))
        await call.read()  # the welcome
