"""What net shows to the organization's own monitoring: the vault's metrics, and its own few."""

import asyncio
import datetime as dt
import threading
from collections.abc import Callable, Iterable, Sequence

from colonnade.core.errors import ColonnadeError
from colonnade.pki.register import days_left
from colonnade.v1 import vault_pb2
from colonnade.wire.readings import CERTIFICATE_DAYS, Reading

_FRESH_S = 2.0


class Shown:
    """The latest metrics of the vault, made fresh when somebody looks."""

    def __init__(self) -> None:
        self._readings: Sequence[Reading] = ()
        self._looked: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fresh = threading.Event()
        self.certificate_ends: dt.datetime | None = None
        self.ready: Callable[[bool], None] = lambda _attached: None
        self.broken: ColonnadeError | None = None  # why nothing can be shown

    def check(self) -> None:
        """Raise why monitoring could not be started, for the vault to tell."""
        if self.broken is not None:
            raise self.broken

    async def show(self, metrics: Iterable[vault_pb2.Metric]) -> None:
        """Take the vault's metrics, and return when somebody has looked at them."""
        self._readings = [_reading(each) for each in metrics]
        self._looked, self._loop = asyncio.Event(), asyncio.get_running_loop()
        self._fresh.set()
        await self._looked.wait()

    def read(self) -> Sequence[Reading]:
        """Return all metrics; waits a little for fresh ones, so from a thread of its own."""
        looked, loop = self._looked, self._loop
        if looked is not None and loop is not None and not looked.is_set():
            self._fresh.clear()
            loop.call_soon_threadsafe(looked.set)
            self._fresh.wait(_FRESH_S)
        ends = self.certificate_ends
        own = () if ends is None else (days_left(ends, dt.datetime.now(dt.UTC)),)
        return [*(Reading.one(*CERTIFICATE_DAYS, days) for days in own), *self._readings]


def _reading(metric: vault_pb2.Metric) -> Reading:
    if not metric.label:
        return Reading.one(metric.name, metric.text, sum(metric.values), counts=metric.counts)
    values: dict[tuple[str, ...], float] = {
        (name,): value for name, value in zip(metric.labels, metric.values, strict=True)
    }
    return Reading(metric.name, metric.text, values, (metric.label,), metric.counts)
