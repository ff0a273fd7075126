"""Server-sent events: tell a page that something on it has changed.

An event says only that; the page then fetches itself and takes over the parts that differ. So what
is shown has one source, and the page is complete without a script. A stream begins with an event,
for what has changed since the page was made or while a connection was lost.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

MAX_STREAMS = 8
_EVERY_S = 1.0
_BEAT_S = 15.0
_CHANGED = "event: changed\ndata: 1\n\n"


class Changes:
    """Streams of events for whoever has a page open; each page is looked at once a second.

    Parameters
    ----------
    look
        Returns what the page shows, whatever form that has; only its digest is compared.
    """

    def __init__(self, look: Callable[[], Awaitable[str]]) -> None:
        self._look, self._open, self.stopping = look, 0, asyncio.Event()

    async def events(self, request: Request) -> Response:
        """Answer ``/events`` for as long as the session lasts that asked."""
        if self._open >= MAX_STREAMS:
            return Response("too many pages are open\n", 429, media_type="text/plain")
        return StreamingResponse(self._stream(request.state.alive), media_type="text/event-stream")

    async def _stream(self, alive: Callable[[], bool]) -> AsyncIterator[str]:
        self._open += 1
        try:
            before, silent = await self._digest(), 0.0
            yield f"retry: 2000\n\n{_CHANGED}"
            while not self.stopping.is_set():
                await asyncio.sleep(_EVERY_S)
                if not alive():
                    return
                silent += _EVERY_S
                if (now := await self._digest()) != before:
                    before, silent = now, 0.0
                    yield _CHANGED
                elif silent >= _BEAT_S:
                    silent = 0.0
                    yield ": still here\n\n"
        finally:
            self._open -= 1

    async def _digest(self) -> str:
        return hashlib.sha256((await self._look()).encode()).hexdigest()
