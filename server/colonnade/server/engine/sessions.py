"""Where the event loop keeps open sessions and watchers."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

from colonnade.core.errors import StaleEpoch
from colonnade.server.engine.outbox import Send
from colonnade.v1 import federation_pb2 as pb

Item = pb.AttachResponse | BaseException | None  # an error or None ends the stream


@dataclass(slots=True)
class OpenSessions:
    """Queues of messages by session, and events by watched job."""

    _queues: dict[tuple[str, int], "asyncio.Queue[Item]"] = field(default_factory=dict)
    _watchers: dict[str, set[asyncio.Event]] = field(default_factory=lambda: defaultdict(set))
    stopping: bool = False

    def deliver(self, messages: list[Send], changed: set[str]) -> None:
        """Hand out what has become durable."""
        for send in messages:
            self.queue(send.party, send.epoch).put_nowait(send.error or send.message)
        for job_id in changed:
            for event in self._watchers.get(job_id, ()):
                event.set()

    def queue(self, party: str, epoch: int) -> "asyncio.Queue[Item]":
        """Return the queue of a session; a new session ends the older ones of its party."""
        if (party, epoch) not in self._queues:
            for name, older in list(self._queues):
                if name == party and older < epoch:
                    text = f"session {older} of party {party} was replaced by a newer one"
                    self._queues[name, older].put_nowait(StaleEpoch(text))
            self._queues[party, epoch] = asyncio.Queue()
        return self._queues[party, epoch]

    def close(self, party: str, epoch: int) -> None:
        """Forget a session."""
        self._queues.pop((party, epoch), None)

    def end_all(self) -> None:
        """End every session and watch, for a clean stop."""
        self.stopping = True
        for queue in self._queues.values():
            queue.put_nowait(None)
        for events in self._watchers.values():
            for event in events:
                event.set()

    def watch(self, job_id: str) -> asyncio.Event:
        """Return an event that is set when the job changes."""
        event = asyncio.Event()
        self._watchers[job_id].add(event)
        return event

    def unwatch(self, job_id: str, event: asyncio.Event) -> None:
        """Forget an event."""
        self._watchers[job_id].discard(event)
        if not self._watchers[job_id]:
            del self._watchers[job_id]
