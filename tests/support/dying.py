"""Processes that are killed, and a coordinator that dies at a commit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from colonnade.core.errors import Unreachable
from colonnade.methods.job import Job, job_id
from colonnade.server.store.sql import Database
from colonnade.simulate.federation import Federation
from colonnade.simulate.processes import Processes
from colonnade.wire.jobspec import job_to_bytes
from support.federation import Running, coordinator


class Died(Exception):
    """Ends a coordinator at a commit."""


class Dying(Database):
    """A store whose process dies just before or just after its commit number ``last``."""

    def __init__(self, url: str, last: int, *, after: bool) -> None:
        super().__init__(url)
        self._left, self._after = last, after

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._left -= 1
        with super().transaction():
            yield
            if self._left == 0 and not self._after:
                raise Died
        if self._left == 0:
            raise Died


async def lived(
    made: Federation,
    job: Job,
    store: Database,
    *,
    port: int,
    look: Callable[[Running, str], None] = lambda _hub, _name: None,
) -> bytes | None:
    """Run one life of a coordinator; return the job's last state if it ended in it.

    ``look`` then takes the coordinator and the job's name.
    """
    name = job_id(job_to_bytes(job))
    try:
        async with coordinator(made, store=store, port=port) as hub:
            try:
                await hub.attached(*(member.party for member in job.members))
                await hub.submit(job)
                assert await hub.ended(name) == "finished"
                await hub.serving.worker.do(lambda: look(hub, name))
                return (await hub.iterates(name))[-1].body
            except Unreachable:  # it died under this call
                return None
    except Died:
        return None
    finally:
        store.close()


def kill_and_restart(processes: Processes, *victims: str) -> None:
    """Kill processes of a federation one after the other; start each again at once."""
    for victim in victims:
        running = processes.process(victim)
        running.kill()
        running.wait()
        if victim == "coordinator":
            processes.start_coordinator()
        else:
            processes.start_party(victim)
