"""The coordinator's logic: sessions, jobs and rounds, without network, disk or threads of its own.

Each method is called inside one transaction of the store; the caller sends what `take` returns
after the transaction is durable. A method checks everything before it writes anything, so a
refused call leaves no trace. If a transaction itself fails, memory and store may differ: where
other processes share the store, memory is loaded again (`reload`); else the process stops and
starts again from the store.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from colonnade.core.errors import BadInput, NotEnrolled, StaleEpoch
from colonnade.server.engine.heads import show_known, standing_in
from colonnade.server.engine.intake import enrolled, with_session
from colonnade.server.engine.jobs import MAX_ROUND, Jobs
from colonnade.server.engine.metering import control_row
from colonnade.server.engine.outbox import Outgoing, Send
from colonnade.server.engine.rounds import Run
from colonnade.server.engine.shared.exchange import ProcessExchange
from colonnade.server.engine.shared.registry import Registry
from colonnade.server.store.base import State, Store
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.frames import wire_bytes
from colonnade.wire.session import PROTOCOL

logger = logging.getLogger(__name__)


class Coordinator:
    """All sessions and jobs of one federation that are this process's."""

    def __init__(
        self,
        store: Store,
        federation: str,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._federation, self._clock = store, federation, clock
        self._out = Outgoing()
        self.parties = Registry(store)
        self._jobs = Jobs(store, self.parties, self._out, clock, monotonic)
        self._exchange: ProcessExchange | None = None
        if store.peers is not None:  # jobs are claimed at the first tick
            self._exchange = ProcessExchange(store, store.peers, self._jobs, self._out)
        for row in store.jobs():
            if row.state.ended:
                self._jobs.ended[row.job_id] = row.state
            elif self._exchange is None:
                self._jobs.load(row)

    @property
    def runs(self) -> Mapping[str, Run]:
        """The jobs that run in this process."""
        return self._jobs.runs

    @property
    def ended(self) -> Mapping[str, State]:
        """How jobs ended that this process knows of."""
        return self._jobs.ended

    @property
    def attached(self) -> frozenset[str]:
        """The parties with an open session, here or with another process."""
        elsewhere = () if self._exchange is None else self._exchange.sessions
        return frozenset((*self._out.sessions, *elsewhere))

    @property
    def changed(self) -> frozenset[str]:
        """The jobs that changed since `take`."""
        return frozenset(self._jobs.changed)

    def take(self) -> tuple[list[Send], set[str]]:
        """Return and forget the messages to send and the jobs that changed."""
        changed, self._jobs.changed = self._jobs.changed, set()
        if self._exchange is not None:
            self._exchange.keep()
        return self._out.take(), changed

    # -- sessions --------------------------------------------------------------------------------

    def enrol(self, party: str, request: pb.EnrolRequest) -> pb.EnrolResponse:
        """Take the key of a party's ledger; a party that has one keeps it."""
        known = self.parties.get(party)
        row = enrolled(known, request, federation=self._federation, party=party)
        if row is not None:
            self.parties.put(row)
        response = pb.EnrolResponse(protocol=PROTOCOL)
        show_known(self.parties[party], response)
        return response

    def attach(self, party: str, hello: pb.Hello) -> int:
        """Open a session, fence older ones, and say what the party has to know."""
        row = self.parties.get(party)
        if row is None or row.ledger_id != hello.ledger_id:
            raise NotEnrolled(f"party {party} has not enrolled this ledger, or another since")
        now, epoch = self._clock(), row.epoch + 1
        self.parties.open_session(with_session(row, hello, federation=self._federation, now=now))
        self._out.sessions[party] = epoch
        logger.info("party_attached party=%s epoch=%d", party, epoch)
        self._jobs.mark_seen(party)
        wire = wire_bytes(pb.AttachRequest(hello=hello).ByteSize())
        self._store.add_uplink([control_row("", 0, party, wire)])
        welcome = pb.Welcome(epoch=epoch, protocol=PROTOCOL)
        show_known(row, welcome)  # what was told before this session
        self._out.welcome(party, welcome)
        for job_id in hello.open_jobs:
            if (state := self._jobs.state_if_ended(job_id)) is not None:
                self._out.ending(party, job_id, state)
        for run in self.runs.values():
            if run.has(party):
                self._jobs.remind(run, party)
                if self._exchange is not None:
                    self._exchange.note_told(run)
        return epoch

    def detach(self, party: str, epoch: int) -> None:
        """Note that a session's stream is gone."""
        if self._out.sessions.get(party) == epoch:
            del self._out.sessions[party]
            self.parties.close_session(party, epoch)
            logger.info("party_detached party=%s epoch=%d", party, epoch)
            self._jobs.mark_seen(party)  # its absence is counted from now
            self._jobs.changed.update(name for name, run in self.runs.items() if run.has(party))

    def receive(self, party: str, message: pb.AttachRequest) -> None:
        """Take one message of a session."""
        if self._out.sessions.get(party) != message.epoch:
            raise StaleEpoch(f"session {message.epoch} of party {party} was replaced")
        self._jobs.mark_seen(party)
        wire = wire_bytes(message.ByteSize())
        if max(message.submission.round, message.refusal.round) > MAX_ROUND:
            raise BadInput(f"party {party} speaks of a round that no job has")
        row, federation, now = self.parties[party], self._federation, self._clock()
        standing = standing_in(message, row, federation=federation, now=now)
        kind = message.WhichOneof("message")
        if kind in ("decision", "submission", "refusal"):
            if self._exchange is None or not self._exchange.forward(party, message):
                self._jobs.take(party, message, wire)
        elif kind is None and standing:
            self._store.add_uplink([control_row("", 0, party, wire)])
        else:
            raise BadInput(f"party {party} sent a message that this program does not know")
        if standing:
            self.parties.put_standing(replace(self.parties[party], **standing))

    # -- jobs ------------------------------------------------------------------------------------

    def submit(self, spec: bytes, by: str, *, again: bool = False, named: bool = False) -> str:
        """Keep a job and propose it; a question that was asked before needs ``again``.

        With ``named`` the job has to say who asks: parties keep budgets by operator.
        """
        name = self._jobs.submit(spec, by, again=again, named=named)
        if self._exchange is not None and name in self.runs:
            self._exchange.note_told(self.runs[name])
        return name

    def cancel(self, job_id: str, by: str) -> None:
        """Stop a job; one that has ended stays as it is, one of another process stops soon."""
        if self._exchange is None or not self._exchange.forward_cancel(job_id, by):
            self._jobs.cancel(job_id, by)

    def tick(self) -> None:
        """Write what waits, close rounds at their deadline, fail jobs that have waited too long."""
        if self._exchange is not None:
            self._exchange.claim()
            self._exchange.collect()
        self._jobs.tick()

    def settle(self) -> None:
        """Write all answers that wait for the rest of their round."""
        self._jobs.settle()

    # -- several processes -----------------------------------------------------------------------

    def collect(self) -> None:
        """Take what other processes left for this one."""
        if self._exchange is not None:
            self._exchange.collect()

    def reload(self) -> None:
        """Forget what the failed transaction left in memory and load jobs from the store."""
        if self._exchange is not None:
            self._exchange.reload()

    def leave(self) -> None:
        """Give jobs and sessions up for other processes to take, for a clean stop."""
        self.settle()
        if self._exchange is not None:
            self._exchange.leave()
