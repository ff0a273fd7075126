"""Jobs as messages move them: decisions, answers, refusals, deadlines, endings.

Like the coordinator's other logic this does no I/O of its own: each method is called inside one
transaction of the store, checks everything before it writes anything, and leaves what is to be sent
in ``out``.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from colonnade.core.errors import (
    BadInput,
    NotEnrolled,
    PolicyRefused,
    RequestConflict,
    UnknownJob,
)
from colonnade.methods.job import job_id as name_of
from colonnade.server.engine.intake import keep, same_answer, with_newest, write_answers
from colonnade.server.engine.metering import control_row, retry_row
from colonnade.server.engine.outbox import Outgoing
from colonnade.server.engine.rounds import Run
from colonnade.server.engine.shared.registry import Registry
from colonnade.server.engine.status import job_status, refuse_repeated
from colonnade.server.store.base import DecisionRow, JobRow, PartyRow, State, Store
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.jobspec import job_from_bytes
from colonnade.wire.session import public_text

logger = logging.getLogger(__name__)

MAX_ROUND = 2**31 - 1  # a database's integers end there, a message's do not


@dataclass(slots=True)
class Jobs:
    """The jobs that this process runs, and how those ended that it knows of."""

    store: Store
    parties: Registry
    out: Outgoing
    clock: Callable[[], float]
    monotonic: Callable[[], float]
    runs: dict[str, Run] = field(default_factory=dict)
    ended: dict[str, State] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    last_seen: dict[str, float] = field(default_factory=dict)
    _newest: dict[str, PartyRow] = field(default_factory=dict)  # not yet written

    def load(self, row: JobRow) -> None:
        """Run a job from where the store has it."""
        self.runs[row.job_id] = Run.load(self.store, row, now=self.monotonic())

    def forget_runs(self) -> None:
        """Forget what is at hand of jobs: the store has all of it that counts."""
        self.runs.clear()
        self.changed.clear()
        self._newest.clear()

    def state_if_ended(self, job_id: str) -> State | None:
        """Return how a job ended, or None if it has not."""
        if job_id not in self.ended and job_id not in self.runs and self.store.peers is not None:
            row = self.store.job(job_id)  # another process may have ended it
            if row is not None and row.state.ended:
                self.ended[job_id] = row.state
        return self.ended.get(job_id)

    def mark_seen(self, party: str) -> None:
        """Note that a party was seen now."""
        self.last_seen[party] = self.monotonic()

    def remind(self, run: Run, party: str) -> None:
        """Tell a party of a job in a session that opens, and what the job waits for."""
        self.out.proposal(run, party)
        self.out.task(run, party)
        self.changed.add(run.row.job_id)

    def take(self, party: str, message: pb.AttachRequest, wire: int) -> None:
        """Take a message about a job that runs here or has ended."""
        self.mark_seen(party)
        match message.WhichOneof("message"):
            case "decision":
                self._decide(party, message.decision, wire)
            case "submission":
                self._accept(party, message.submission, wire)
            case "refusal":
                self._refuse(party, message.refusal, wire)

    def submit(self, spec: bytes, by: str, *, again: bool = False, named: bool = False) -> str:
        """Keep a job and propose it, as `Coordinator.submit`."""
        name = name_of(spec)
        if name in self.runs or name in self.ended or self.store.job(name) is not None:
            return name
        job = job_from_bytes(spec)
        if named and not job.requested_by:
            raise PolicyRefused(
                f"the job does not say who asks, and parties keep budgets by it: name {by} in it"
            )
        if job.requested_by and job.requested_by != by:
            raise PolicyRefused(
                f"the job says that {job.requested_by} asks, and {by} submits it; who asks submits"
            )
        for member in job.members:
            if member.party not in self.parties:
                raise NotEnrolled(f"party {member.party} is not enrolled with this coordinator")
        if not again:
            refuse_repeated(self.store, self.runs, spec)
        row = JobRow(name, spec, by, self.clock())
        run = Run.load(self.store, row, now=self.monotonic())
        self.store.add_job(row)
        self.runs[name] = run
        for member in run.job.members:
            self.out.proposal(run, member.party)
        self.changed.add(name)
        logger.info("job_submitted job=%s by=%s parties=%d", name[:12], by, len(run.job.members))
        return name

    def cancel(self, job_id: str, by: str) -> None:
        """Stop a job; one that has ended stays as it is."""
        if job_id in self.runs:
            self._end(self.runs[job_id], State.CANCELLED, f"cancelled by {by}")
        elif self.state_if_ended(job_id) is None:
            raise UnknownJob(f"there is no job {public_text(job_id, 12)}")

    def tick(self) -> None:
        """Write what waits, close rounds at their deadline, fail jobs that have waited too long."""
        self.settle()
        now = self.monotonic()
        for run in list(self.runs.values()):
            if run.state is not None:
                self._advance(run, expired=run.strategy.expired(run, now))
            reason = run.strategy.overdue(run, now, self.last_seen)
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
        self.store.add_uplink([control_row(run.row.job_id, run.round, party, wire)])
        code, text = public_text(decision.code, 40), public_text(decision.message)
        waiting = decision.waiting and not decision.accepted and run.state is None
        row = DecisionRow(run.row.job_id, party, decision.accepted, code, text, waiting)
        if run.decisions.get(party) != row:
            self.store.put_decision(row)
            run.decisions[party] = row
        self.changed.add(run.row.job_id)
        if not row.accepted and not waiting and not run.strategy.partial:
            self._end(run, State.FAILED, f"party {party} refused the job ({code}): {text}")
        elif run.state is None and not run.awaited():
            run.row = replace(run.row, state=State.RUNNING)
            self.store.set_state(run.row)
            self.store.put_iterate(run.begin())
            self._advance(run)

    def _accept(self, party: str, submission: pb.Submission, wire: int) -> None:
        run, round_ = self._run_of(party, submission.job_id), submission.round
        is_open = run is not None and round_ == run.round and party not in run.answers
        if run is None or not (is_open or self._is_late(run, party, round_)):
            self._accept_again(party, submission, wire)
            return
        tasks = run.tasks if is_open else self.store.tasks(run.row.job_id, round_)
        if party not in tasks:
            raise BadInput(f"party {party} was asked for nothing in round {round_}")
        releases = run.strategy.releases(party, submission)
        known = with_newest(self._with_unwritten(self.parties[party]), releases)
        answer = run.strategy.parse(run, party, submission, tasks[party])
        self.parties.note(known)  # everything is checked
        self._newest[party] = known
        keep(run, party, submission, answer, wire)  # the next task, or the ending, tells the party
        self.changed.add(run.row.job_id)
        self._advance(run)

    def _is_late(self, run: Run, party: str, round_: int) -> bool:
        """Return whether a party has not yet answered a round that closed without it."""
        if not run.strategy.partial or run.state is None or round_ >= run.round:
            return False
        self._settle(run)
        return party not in self.store.answers(run.row.job_id, round_)

    def _accept_again(self, party: str, submission: pb.Submission, wire: int) -> None:
        """Acknowledge what is kept already; other bytes under a used key are refused."""
        self.settle()
        stored = self.store.answers(submission.job_id, submission.round).get(party)
        if stored is None:
            run = self.runs.get(submission.job_id)
            if self.state_if_ended(submission.job_id) is not None:
                return  # `_run_of` has told the party
            if run is not None and run.strategy.forgets and submission.round < run.round:
                self.store.add_uplink([retry_row(submission, party, wire)])
                self.out.receipted(party, submission)
                return
            raise BadInput(f"party {party} was not asked for round {submission.round}")
        if not same_answer(stored, submission):
            raise RequestConflict(
                f"party {party} answered round {submission.round} before with other bytes"
            )
        self.store.add_uplink([retry_row(submission, party, wire)])
        self.out.receipted(party, submission)

    def _refuse(self, party: str, refusal: pb.Refusal, wire: int) -> None:
        if (run := self._run_of(party, refusal.job_id)) is None:
            return
        task = self.store.tasks(refusal.job_id, refusal.round).get(party)
        if (declined := run.strategy.decline(party, refusal, task)) is not None:
            self._accept(party, declined, wire)
            return
        self.store.add_uplink([control_row(run.row.job_id, run.round, party, wire)])
        if refusal.round < run.round or party in run.answers:
            return  # a task that came twice: it was answered, and its bytes may be purged by now
        code, text = public_text(refusal.code, 40), public_text(refusal.message)
        reason = f"party {party} refused round {refusal.round} ({code}): {text}"
        self._end(run, State.FAILED, reason)

    def _advance(self, run: Run, *, expired: bool = False) -> None:
        """Open rounds, and close them while nobody is awaited, or the open one if it expired."""
        now = self.monotonic()
        while not run.algorithm.finished(run.state):
            if not run.opened:
                if run.strategy.in_backoff(run, now):
                    return
                self.store.put_tasks(run.row.job_id, run.round, run.open(now))
                for party in run.tasks:
                    self.out.task(run, party)
            if not run.strategy.may_close(run, expired=expired):
                return
            expired = False
            self._settle(run)
            job_id, closed = run.row.job_id, run.round
            logger.info(
                "round_closed job=%s round=%d parties=%d", job_id[:12], closed, len(run.answers)
            )
            self.store.put_iterate(run.close_round(now))
            if run.strategy.forgets:
                kept = run.strategy.kept_answers(run, self.store.answers(job_id, closed))
                self.store.forget_messages(job_id, first=closed, before=run.round)
                self.store.put_answers(job_id, closed, kept)
        self._end(run, *run.strategy.outcome(run))

    def _settle(self, run: Run) -> None:
        parties = write_answers(self.store, run)
        self.parties.put_newest([self._newest.pop(each) for each in parties & {*self._newest}])

    def _end(self, run: Run, state: State, reason: str) -> None:
        job_id = run.row.job_id
        self._settle(run)
        if run.strategy.has_unused(run):
            self.store.put_iterate(run.close_round(self.monotonic()))
        run.row = replace(run.row, state=state, reason=reason, ended_at=self.clock())
        self.store.set_state(replace(run.row, outcome=job_status(run).SerializeToString()))
        logger.info("job_ended job=%s state=%s round=%d", job_id[:12], state.value, run.round)
        if run.strategy.forgets:
            keep = run.round if state is State.FINISHED else MAX_ROUND
            first = run.round if state is State.FINISHED else 0
            self.store.forget_messages(job_id, first=first, before=MAX_ROUND)
            self.store.forget_iterates(job_id, before=keep)
        del self.runs[job_id]
        self.ended[job_id] = state
        self.changed.add(job_id)
        for member in run.job.members:
            self.out.ending(member.party, job_id, state)

    def _run_of(self, party: str, job_id: str) -> Run | None:
        """Return a job that the party is in; None, and tell the party, if it has ended."""
        if (run := self.runs.get(job_id)) is None:
            if (state := self.state_if_ended(job_id)) is None:
                raise UnknownJob(f"there is no job {public_text(job_id, 12)}")
            self.out.ending(party, job_id, state)
        elif not run.has(party):
            raise BadInput(f"party {party} is not in job {job_id[:12]}")
        return run

    def _with_unwritten(self, row: PartyRow) -> PartyRow:
        """Return a party's row with its newest release that is still to be written."""
        newest = self._newest.get(row.name)
        if newest is None or newest.ledger_id != row.ledger_id:
            return row
        if newest.latest_seq <= row.latest_seq:
            return row
        return replace(row, latest=newest.latest, latest_seq=newest.latest_seq)
