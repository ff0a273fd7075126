"""One coordinator process among several on a database.

Every process holds the sessions of the parties that dialled it, and runs the jobs that it owns.
What a party says about another's job, and what a job asks of a party that is attached elsewhere,
crosses through the database. All of it may be lost or repeated: a session that opens and a job that
changes hands are told everything anew, and parties answer a repeated question with stored bytes.
"""

import logging
from collections.abc import Mapping

from colonnade.core.errors import ColonnadeError, StaleEpoch, StoreFailed
from colonnade.server.engine.jobs import Jobs
from colonnade.server.engine.outbox import Outgoing, Send
from colonnade.server.engine.rounds import Run
from colonnade.server.store.base import Letter, OpenSession, Peers, Store
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.frames import wire_bytes
from colonnade.wire.session import public_text
from colonnade.wire.status import error_of

logger = logging.getLogger(__name__)
_CANCEL, _MESSAGE = "cancel", "message"
_NOTHING = pb.AttachResponse()
# At a time; the rest follows at the next look.
_MAX_LETTERS, _MAX_CLAIMS = 256, 16


class ProcessExchange:
    """What crosses between processes, and which jobs are this one's."""

    def __init__(self, store: Store, peers: Peers, jobs: Jobs, out: Outgoing) -> None:
        self._store, self._peers, self._jobs, self._out = store, peers, jobs, out
        self.sessions: Mapping[str, OpenSession] = {}
        self._durable: dict[str, int] = {}  # sessions here, as of the last commit
        self._told: dict[tuple[str, str], int] = {}  # session in which a party was sent a job
        out.elsewhere = self._send

    def keep(self) -> None:
        """Note that the sessions at hand are durable."""
        if self._durable != self._out.sessions:
            self._durable = dict(self._out.sessions)

    def claim(self) -> None:
        """Let go of jobs that another process took, and take over those whose owner is gone."""
        for job_id in self._peers.lost():
            if self._jobs.runs.pop(job_id, None) is not None:
                self._jobs.changed.add(job_id)
                logger.info("job_lost job=%s", job_id[:12])
        for job_id in self._peers.claim(_MAX_CLAIMS):
            self._load(job_id)
            logger.info("job_taken_over job=%s", job_id[:12])

    def reload(self) -> None:
        """Load the jobs that are this process's by the database, and only those."""
        self._out.take()
        self._out.sessions.clear()
        self._out.sessions.update(self._durable)
        self._jobs.forget_runs()
        self._told.clear()
        with self._store.transaction():
            for job_id in self._peers.owned():
                self._load(job_id)

    def leave(self) -> None:
        """Give up all jobs and sessions."""
        self._jobs.forget_runs()
        self._peers.leave()

    def note_told(self, run: Run) -> list[str]:
        """Note that all who are attached were told of a job; return who was not before."""
        fresh = []
        for party in run.counts:
            epoch, known = self._epoch(party), (run.row.job_id, party)
            if epoch is not None and self._told.get(known) != epoch:
                self._told[known] = epoch
                fresh.append(party)
        return fresh

    def forward(self, party: str, message: pb.AttachRequest) -> bool:
        """Leave a message for the owner of its job; False if it is to be taken here."""
        said = getattr(message, str(message.WhichOneof("message")))
        if said.job_id in self._jobs.runs:
            return False
        body = message.SerializeToString(deterministic=True)
        return self._peers.post_up(said.job_id, sender=party, kind=_MESSAGE, body=body)

    def forward_cancel(self, job_id: str, by: str) -> bool:
        """Ask the owner of a job to cancel it; False if that is done here."""
        if job_id in self._jobs.runs:
            return False
        return self._peers.post_up(job_id, sender=by, kind=_CANCEL, body=b"")

    def collect(self) -> None:
        """Take what others left, and see who is attached where."""
        for letter in self._peers.take_up(_MAX_LETTERS):
            try:
                self._take(letter)
            except StoreFailed:
                raise
            except ColonnadeError as error:  # refused before it wrote anything
                if letter.kind == _MESSAGE:
                    self._refuse(letter.sender, error)
        self._look()
        for letter in self._peers.take_down(_MAX_LETTERS):
            self._deliver(letter)

    # -- inside ----------------------------------------------------------------------------------

    def _take(self, letter: Letter) -> None:
        if letter.kind == _CANCEL:
            self._jobs.cancel(letter.about, letter.sender)
            return
        message = pb.AttachRequest.FromString(letter.body)
        self._jobs.take(letter.sender, message, wire_bytes(message.ByteSize()))

    def _look(self) -> None:
        """See where parties are attached; tell those in new sessions of the jobs here."""
        found = self._peers.sessions()
        for party, epoch in list(self._out.sessions.items()):
            newer = found.get(party)
            if newer is not None and newer.epoch > epoch:
                text = f"session {epoch} of party {party} was replaced by a newer one"
                self._out.messages.append(Send(party, epoch, _NOTHING, StaleEpoch(text)))
                del self._out.sessions[party]
        mine = self._peers.process
        self.sessions = {name: each for name, each in found.items() if each.process != mine}
        for run in self._jobs.runs.values():
            self._tell(run)

    def _tell(self, run: Run) -> None:
        for party in self.note_told(run):
            self._jobs.mark_seen(party)
            self._jobs.remind(run, party)

    def _epoch(self, party: str) -> int | None:
        if party in self._out.sessions:
            return self._out.sessions[party]
        return self.sessions[party].epoch if party in self.sessions else None

    def _load(self, job_id: str) -> None:
        row = self._store.job(job_id)
        if row is not None and not row.state.ended:
            self._jobs.load(row)
            self._jobs.changed.add(job_id)

    def _send(self, party: str, message: pb.AttachResponse) -> None:
        if party in self.sessions:
            self._peers.post_down(party, code="", body=message.SerializeToString())

    def _refuse(self, party: str, error: ColonnadeError) -> None:
        """Have a party's stream end with an error, as where it is attached to the job's owner."""
        text = error.for_peers.encode()
        if party in self._out.sessions:
            self._deliver(Letter(party, "", error.code, text))
        elif party in self.sessions:
            self._peers.post_down(party, code=error.code, body=text)

    def _deliver(self, letter: Letter) -> None:
        epoch = self._out.sessions.get(letter.about)
        if epoch is None:
            return
        if letter.kind:
            error = error_of(letter.kind, public_text(letter.body.decode()))
            send = Send(letter.about, epoch, _NOTHING, error)
        else:
            send = Send(letter.about, epoch, pb.AttachResponse.FromString(letter.body))
        self._out.messages.append(send)
