"""The net that a vault works with: the present one, and the next when it ends."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence

from colonnade.core.errors import BadIdentity, ColonnadeError, Unreachable
from colonnade.party.vault.link import Link, Links
from colonnade.party.vault.pacing import Pace
from colonnade.v1 import vault_pb2
from colonnade.wire.readings import Reading

# However often monitoring looks, or net says so.
_SHOW_S = 0.2
_ATTEST_S = 60.0


class Partner:
    """Keeps one link with net; ``read`` gives the metrics that it shows, if any."""

    def __init__(
        self, links: Links, pace: Pace, read: Callable[[], Sequence[Reading]] | None
    ) -> None:
        self._links, self._pace, self._read = links, pace, read
        self._link: Link | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shown: list[vault_pb2.Metric] = []
        self._tasks = set[asyncio.Task[None]]()

    async def link(self) -> Link:
        """Return the link, or wait until a net is there."""
        if self._link is None or not self._link.open:
            await self.close()
            self._link = await Link.over(await self._links.next())
            self._loop = asyncio.get_running_loop()
            if self._read is not None:
                link, read = self._link, self._read
                self._start(lambda: self._show(link, read))
        return self._link

    async def close(self) -> None:
        """End the link, if there is one."""
        for task in self._tasks:
            task.cancel()
        if self._link is not None:
            await self._link.close()
            self._link = None

    def tell_attached(self, attached: bool) -> None:
        """Have net's health say whether a session is open."""

        async def tell(link: Link) -> None:
            await link.call(attached=vault_pb2.Attached(attached=attached))

        if self._link is not None and self._link.open:
            link = self._link
            self._start(lambda: tell(link))

    async def check_credentials(self) -> None:
        """Raise what is wrong with the certificate on disk, if a net is there to look."""
        if self._link is not None and self._link.open:
            await self._link.call(check_credentials=vault_pb2.CheckCredentials())

    def attest(self, statement: bytes, size: int) -> bytes:
        """Have net sign, at a time of the grid: net must not see what was computed before.

        Waits, so not for the loop's thread.
        """
        link, loop = self._link, self._loop
        if link is None or loop is None:
            raise Unreachable("no net is there to sign")

        async def ask() -> bytes:
            await asyncio.sleep(self._pace.wait_s(time.monotonic() - link.read_at, ""))
            answer = await link.call(attest=vault_pb2.Attest(statement=statement, size=size))
            return answer.message

        try:
            return asyncio.run_coroutine_threadsafe(ask(), loop).result(_ATTEST_S)
        except TimeoutError:
            raise BadIdentity("net does not sign for this party") from None

    def _start(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.get_running_loop().create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _show(self, link: Link, read: Callable[[], Sequence[Reading]]) -> None:
        """Give net the metrics, again whenever it says that somebody looks.

        While an answer is made, those of before: entries of the ledger come before and after the
        data is read, so fresh ones would show net, within `_SHOW_S`, how long that took.
        """
        while link.open:
            if not self._pace.answering:
                self._shown = [_metric(each) for each in read()]
            monitored = vault_pb2.Monitored(metrics=self._shown)
            await link.call(timeout=None, monitored=monitored)
            await asyncio.sleep(_SHOW_S)


async def _quietly(work: Callable[[], Awaitable[None]]) -> None:
    """Do some work; made here, because a task that is cancelled at once does not begin."""
    with contextlib.suppress(ColonnadeError):  # a link that ends tells the session too
        await work()


def _metric(reading: Reading) -> vault_pb2.Metric:
    return vault_pb2.Metric(
        name=reading.name,
        text=reading.text,
        label="".join(reading.labels),
        counts=reading.counts,
        labels=["".join(each) for each in reading.values],
        values=reading.values.values(),
    )
