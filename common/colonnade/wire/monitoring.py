"""What an operator's tools see of a process: Prometheus metrics and gRPC health.

Both are off unless the configuration names an address; they speak plain text, so that address is
loopback or a network of the operator's own. They show counts, sizes, budgets and times that are
public or the organization's own, never data.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING

from colonnade.core.errors import BadInput, Unreachable
from colonnade.wire.limits import split_address
from colonnade.wire.readings import Addresses, Reading

if TYPE_CHECKING:
    from prometheus_client import Metric

logger = logging.getLogger(__name__)
# The two services that health knows: the process runs; it can do its work.
LIVE, READY = "", "ready"
_CHECK_S = 5.0
_OPTIONS = (("grpc.so_reuseport", 0), ("grpc.enable_http_proxy", 0))


@dataclass(slots=True, eq=False)
class Monitor:
    """The servers of a running process, and what they say."""

    read: Callable[[], Sequence[Reading]]
    ready: Callable[[bool], None] = field(default=lambda _: None)

    def collect(self) -> "Iterator[Metric]":
        """Yield the metrics as Prometheus takes them; called by its own thread."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        build = GaugeMetricFamily("colonnade_build_info", "the program", labels=["version"])
        build.add_metric([version("colonnade")], 1.0)
        yield build
        for reading in self.read():
            family = CounterMetricFamily if reading.counts else GaugeMetricFamily
            metric = family(reading.name, reading.text, labels=reading.labels)
            for labels, value in reading.values.items():
                metric.add_metric(labels, value)
            yield metric


@asynccontextmanager
async def monitored(
    addresses: Addresses, read: Callable[[], Sequence[Reading]]
) -> AsyncIterator[Monitor]:
    """Serve what ``addresses`` names until the block ends; `Monitor.ready` says what health says.

    ``read`` is called from another thread at every scrape.
    """
    monitor = Monitor(read)
    async with AsyncExitStack() as stack:
        if addresses.metrics is not None:
            stack.callback(_serve_metrics(addresses.metrics, monitor))
        if addresses.health is not None:
            await stack.enter_async_context(_health(addresses.health, monitor))
        yield monitor


def _serve_metrics(address: str, monitor: Monitor) -> Callable[[], None]:
    """Start the metrics' server; return what ends it."""
    from prometheus_client import PROCESS_COLLECTOR, CollectorRegistry, start_http_server

    host, port = split_address(address)
    registry = CollectorRegistry()
    registry.register(PROCESS_COLLECTOR)
    registry.register(monitor)
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        what = (error.strerror or "failed").lower()
        raise BadInput(f"cannot show metrics on {address}: {what}") from None
    logger.info("metrics address=%s:%d", host, server.server_port)

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return end


@asynccontextmanager
async def _health(address: str, monitor: Monitor) -> AsyncIterator[None]:
    """Serve gRPC's standard health service."""
    import grpc
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc

    answers = health_pb2.HealthCheckResponse
    servicer, server = health.aio.HealthServicer(), grpc.aio.server(options=_OPTIONS)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        raise BadInput(f"cannot show health on {address}; is the port taken?") from None
    pending = set[asyncio.Task[None]]()

    def say(service: str, *, serving: bool) -> None:
        state = answers.SERVING if serving else answers.NOT_SERVING
        task = asyncio.create_task(servicer.set(service, state))
        pending.add(task)
        task.add_done_callback(pending.discard)

    say(LIVE, serving=True)
    say(READY, serving=False)
    monitor.ready = lambda serving: say(READY, serving=serving)
    await server.start()
    logger.info("health address=%s:%d", split_address(address)[0], port)
    try:
        yield
    finally:
        await server.stop(None)


def check_health(address: str, service: str = READY) -> bool:
    """Ask a process whether it can do its work."""
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    split_address(address)
    with grpc.insecure_channel(address, options=_OPTIONS) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service=service), timeout=_CHECK_S
            )
        except grpc.RpcError:
            raise Unreachable(f"nothing answers for health on {address}") from None
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
