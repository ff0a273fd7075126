"""The coordinator's logic: sessions, jobs and rounds, without network, disk or threads of its own.

Each method is called inside one transaction of the store; the caller sends what `take` returns
after the transaction is durable. A method checks everything before it writes anything, so a
refused call leaves no trace. If a transaction itself fails, memory and store may differ: the
process stops and starts again from the store.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from colonnade.core.errors import (
    BadInput,
    NotEnrolled,
    PolicyRefused,
    RequestConflict,
    StaleEpoch,
    UnknownJob,
)
from colonnade.methods.job import job_id as name_of
from colonnade.server.engine.heads import show_known, standing_in
from colonnade.server.engine.intake import (
    enrolled,
    keep,
    same_answer,
    with_newest,
    with_session,
    write_answers,
)
from colonnade.server.engine.metering import control_row, retry_row
from colonnade.server.engine.outbox import Outgoing, Send
from colonnade.server.engine.repeats import refuse_repeated
from colonnade.server.engine.rounds import Run
from colonnade.server.engine.status import job_status
from colonnade.server.store.base import DecisionRow, JobRow, PartyRow, State, Store
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.frames import wire_bytes
from colonnade.wire.jobspec import job_from_bytes
from colonnade.wire.session import PROTOCOL, public_text

logger = logging.getLogger(__name__)

MAX_ROUND = 2**31 - 1  # a database's integers end there, a message's do not


class Coordinator:
    """All jobs and sessions of one federation."""

    def __init__(
        self,
        store: Store,
        federation: str,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._federation = store, federation
        self._clock, self._monotonic = clock, monotonic
        self._out, self._changed = Outgoing(), set[str]()
        self._last_seen: dict[str, float] = {}
        jobs, now = store.jobs(), monotonic()
        self.parties = {row.name: row for row in store.parties()}
        self.runs = {
            row.job_id: Run.load(store, row, now=now) for row in jobs if not row.state.ended
        }
        self.ended = {row.job_id: row.state for row in jobs if row.state.ended}

    @property
    def attached(self) -> frozenset[str]:
        """The parties with an open session."""
        return frozenset(self._out.sessions)

    def take(self) -> tuple[list[Send], set[str]]:
        """Return and forget the messages to send and the jobs that changed."""
        changed, self._changed = self._changed, set()
        return self._out.take(), changed

    def enrol(self, party: str, request: pb.EnrolRequest) -> pb.EnrolResponse:
        """Take the key of a party's ledger; a party that has one keeps it."""
        known = self.parties.get(party)
        row = enrolled(known, request, federation=self._federation, party=party)
        if row is not None:
            self._put_party(row)
        response = pb.EnrolResponse(protocol=PROTOCOL)
        show_known(self.parties[party], response)
        return response

    def attach(self, party: str, hello: pb.Hello) -> int:
        """Open a session, fence older ones, and say what the party has to know."""
        row = self.parties.get(party)
        if row is None or row.ledger_id != hello.ledger_id:
            raise NotEnrolled(f"party {party} has not enrolled this ledger, or another since")
        now, epoch = self._clock(), row.epoch + 1
        self._put_party(with_session(row, hello, federation=self._federation, now=now))
        self._out.sessions[party] = epoch
        logger.info("party_attached party=%s epoch=%d", party, epoch)
        self._mark_seen(party)
        wire = wire_bytes(pb.AttachRequest(hello=hello).ByteSize())
        self._store.add_uplink([control_row("", 0, party, wire)])
        welcome = pb.Welcome(epoch=epoch, protocol=PROTOCOL)
        show_known(row, welcome)  # what was told before this session
        self._out.welcome(party, welcome)
        for job_id in hello.open_jobs:
            if job_id in self.ended:
                self._out.ending(party, job_id, self.ended[job_id])
        for run in self.runs.values():
            if run.has(party):
                self._out.proposal(run, party)
                self._out.task(run, party)
                self._changed.add(run.row.job_id)
        return epoch

    def detach(self, party: str, epoch: int) -> None:
        """Note that a session's stream is gone."""
        if self._out.sessions.get(party) == epoch:
            del self._out.sessions[party]
            logger.info("party_detached party=%s epoch=%d", party, epoch)
            self._mark_seen(party)  # its absence is counted from now
            self._changed.update(name for name, run in self.runs.items() if run.has(party))

    def receive(self, party: str, message: pb.AttachRequest) -> None:
        """Take one message of a session."""
        if self._out.sessions.get(party) != message.epoch:
            raise StaleEpoch(f"session {message.epoch} of party {party} was replaced")
        self._mark_seen(party)
        wire = wire_bytes(message.ByteSize())
        if max(message.submission.round, message.refusal.round) > MAX_ROUND:
            raise BadInput(f"party {party} speaks of a round that no job has")
        row, federation, now = self.parties[party], self._federation, self._clock()
        standing = standing_in(message, row, federation=federation, now=now)
        match message.WhichOneof("message"):
            case "decision":
                self._decide(party, message.decision, wire)
            case "submission":
                self._accept(party, message.submission, wire)
            case "refusal":
                self._refuse(party, message.refusal, wire)
            case None if standing:
                self._store.add_uplink([control_row("", 0, party, wire)])
            case _:
                raise BadInput(f"party {party} sent a message that this program does not know")
        if standing:
            self._put_party(replace(self.parties[party], **standing))

    # -- jobs ------------------------------------------------------------------------------------

    def submit(self, spec: bytes, by: str, *, again: bool = False) -> str:
        """Keep a job and propose it; a question that was asked before needs ``again``."""
        name = name_of(spec)
        if name in self.runs or name in self.ended:
            return name
        job = job_from_bytes(spec)
        if job.requested_by and job.requested_by != by:
            raise PolicyRefused(
                f"the job says that {job.requested_by} asks, and {by} submits it; who asks submits"
            )
        for member in job.members:
            if member.party not in self.parties:
                raise NotEnrolled(f"party {member.party} is not enrolled with this coordinator")
        if not again:
            refuse_repeated(self._store, self.runs, spec)
        row = JobRow(name, spec, by, self._clock())
        run = Run.load(self._store, row, now=self._monotonic())
        self._store.add_job(row)
        self.runs[name] = run
        for member in run.job.members:
            self._out.proposal(run, member.party)
        self._changed.add(name)
        logger.info("job_submitted job=%s by=%s parties=%d", name[:12], by, len(run.job.members))
        return name

    def cancel(self, job_id: str, by: str) -> None:
        """Stop a job; one that has ended stays as it is."""
        if job_id in self.runs:
            self._end(self.runs[job_id], State.CANCELLED, f"cancelled by {by}")
        elif job_id not in self.ended:
            raise UnknownJob(f"there is no job {public_text(job_id, 12)}")

    def tick(self) -> None:
        """Write what waits, close rounds at their deadline, fail jobs that have waited too long."""
        self.settle()
        now = self._monotonic()
        for run in list(self.runs.values()):
            if run.state is not None:
                self._advance(run, expired=run.strategy.expired(run, now))
            reason = run.strategy.overdue(run, now, self._last_seen)
            if reason and run.row.job_id in self.runs:
                self._end(run, State.FAILED, reason)

    def settle(self) -> None:
        """Write all answers that wait for the rest of their round."""
        for run in self.runs.values():
            self._settle(run)

    # -- inside ----------------------------------------------------------------------------------

    def _decide(self, party: str, decision: pb.Decision, wire: int) -> None:
        if (run := self._run_of(party, decision.job_id)) is None:
            return
        self._store.add_uplink([control_row(run.row.job_id, run.round, party, wire)])
        code, text = public_text(decision.code, 40), public_text(decision.message)
        waiting = decision.waiting and not decision.accepted and run.state is None
        row = DecisionRow(run.row.job_id, party, decision.accepted, code, text, waiting)
        if run.decisions.get(party) != row:
            self._store.put_decision(row)
            run.decisions[party] = row
        self._changed.add(run.row.job_id)
        if not row.accepted and not waiting and not run.strategy.partial:
            self._end(run, State.FAILED, f"party {party} refused the job ({code}): {text}")
        elif run.state is None and not run.awaited():
            run.row = replace(run.row, state=State.RUNNING)
            self._store.set_state(run.row)
            self._store.put_iterate(run.begin())
            self._advance(run)

    def _accept(self, party: str, submission: pb.Submission, wire: int) -> None:
        run, round_ = self._run_of(party, submission.job_id), submission.round
        is_open = run is not None and round_ == run.round and party not in run.answers
        if run is None or not (is_open or self._is_late(run, party, round_)):
            self._accept_again(party, submission, wire)
            return
        tasks = run.tasks if is_open else self._store.tasks(run.row.job_id, round_)
        if party not in tasks:
            raise BadInput(f"party {party} was asked for nothing in round {round_}")
        releases = run.strategy.releases(party, submission)
        known = with_newest(self.parties[party], releases)
        answer = run.strategy.parse(run, party, submission, tasks[party])
        self.parties[party] = known  # everything is checked
        keep(run, party, submission, answer, wire)  # the next task, or the ending, tells the party
        self._changed.add(run.row.job_id)
        self._advance(run)

    def _is_late(self, run: Run, party: str, round_: int) -> bool:
        """Return whether a party has not yet answered a round that closed without it."""
        if not run.strategy.partial or run.state is None or round_ >= run.round:
            return False
        self._settle(run)
        return party not in self._store.answers(run.row.job_id, round_)

    def _accept_again(self, party: str, submission: pb.Submission, wire: int) -> None:
        """Acknowledge what is kept already; other bytes under a used key are refused."""
        self.settle()
        stored = self._store.answers(submission.job_id, submission.round).get(party)
        if stored is None:
            run = self.runs.get(submission.job_id)
            if submission.job_id in self.ended:
                return  # `_run_of` has told the party
            if run is not None and run.strategy.forgets and submission.round < run.round:
                self._store.add_uplink([retry_row(submission, party, wire)])
                self._out.receipted(party, submission)
                return
            raise BadInput(f"party {party} was not asked for round {submission.round}")
        if not same_answer(stored, submission):
            raise RequestConflict(
                f"party {party} answered round {submission.round} before with other bytes"
            )
        self._store.add_uplink([retry_row(submission, party, wire)])
        self._out.receipted(party, submission)

    def _refuse(self, party: str, refusal: pb.Refusal, wire: int) -> None:
        if (run := self._run_of(party, refusal.job_id)) is None:
            return
        task = self._store.tasks(refusal.job_id, refusal.round).get(party)
        if (declined := run.strategy.decline(party, refusal, task)) is not None:
            self._accept(party, declined, wire)
            return
        self._store.add_uplink([control_row(run.row.job_id, run.round, party, wire)])
        code, text = public_text(refusal.code, 40), public_text(refusal.message)
        reason = f"party {party} refused round {refusal.round} ({code}): {text}"
        self._end(run, State.FAILED, reason)

    def _advance(self, run: Run, *, expired: bool = False) -> None:
        """Open rounds, and close them while nobody is awaited, or the open one if it expired."""
        now = self._monotonic()
        while not run.algorithm.finished(run.state):
            if not run.opened:
                if run.strategy.in_backoff(run, now):
                    return
                self._store.put_tasks(run.row.job_id, run.round, run.open(now))
                for party in run.tasks:
                    self._out.task(run, party)
            if not run.strategy.may_close(run, expired=expired):
                return
            expired = False
            self._settle(run)
            job_id, answered = run.row.job_id[:12], len(run.answers)
            logger.info("round_closed job=%s round=%d parties=%d", job_id, run.round, answered)
            self._store.put_iterate(run.close_round(now))
            if run.strategy.forgets:
                self._store.forget_messages(run.row.job_id, before=run.round)
        self._end(run, *run.strategy.outcome(run))

    def _settle(self, run: Run) -> None:
        for party in write_answers(self._store, run):
            self._store.put_party(self.parties[party])

    def _end(self, run: Run, state: State, reason: str) -> None:
        job_id = run.row.job_id
        self._settle(run)
        if run.strategy.has_unused(run):
            self._store.put_iterate(run.close_round(self._monotonic()))
        run.row = replace(run.row, state=state, reason=reason, ended_at=self._clock())
        self._store.set_state(replace(run.row, outcome=job_status(run).SerializeToString()))
        logger.info("job_ended job=%s state=%s round=%d", job_id[:12], state.value, run.round)
        if run.strategy.forgets:
            self._store.forget_messages(job_id, before=MAX_ROUND)
            keep = run.round if state is State.FINISHED else MAX_ROUND
            self._store.forget_iterates(job_id, before=keep)
        del self.runs[job_id]
        self.ended[job_id] = state
        self._changed.add(job_id)
        for member in run.job.members:
            self._out.ending(member.party, job_id, state)

    def _run_of(self, party: str, job_id: str) -> Run | None:
        """Return a job that the party is in; None, and tell the party, if it has ended."""
        if (run := self.runs.get(job_id)) is None:
            if job_id not in self.ended:
                raise UnknownJob(f"there is no job {public_text(job_id, 12)}")
            self._out.ending(party, job_id, self.ended[job_id])
        elif not run.has(party):
            raise BadInput(f"party {party} is not in job {job_id[:12]}")
        return run

    def _mark_seen(self, party: str) -> None:
        self._last_seen[party] = self._monotonic()

    def _put_party(self, row: PartyRow) -> None:
        self._store.put_party(row)
        self.parties[row.name] = row
