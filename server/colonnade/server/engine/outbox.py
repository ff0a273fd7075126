"""Messages that wait for their transaction to become durable."""

from collections.abc import Callable
from dataclasses import dataclass, field

from colonnade.core.errors import ColonnadeError
from colonnade.server.engine.rounds import Run
from colonnade.server.store.base import State
from colonnade.v1 import federation_pb2 as pb


@dataclass(frozen=True, slots=True)
class Send:
    """A message for a party's session."""

    party: str
    epoch: int
    message: pb.AttachResponse
    error: ColonnadeError | None = None  # ends the session instead


@dataclass(slots=True)
class Outgoing:
    """The open sessions, and what to send to them; who is away is told at the next attach."""

    sessions: dict[str, int] = field(default_factory=dict)  # epoch by party
    messages: list[Send] = field(default_factory=list)
    # Takes what is for parties that are attached to another process, where there are others.
    elsewhere: Callable[[str, pb.AttachResponse], None] | None = None

    def welcome(self, party: str, welcome: pb.Welcome) -> None:
        """Answer a hello."""
        self._send(party, pb.AttachResponse(welcome=welcome))

    def proposal(self, run: Run, party: str) -> None:
        """Ask a party about a job, or remind it of what it accepted."""
        proposal = pb.Proposal(spec=run.row.spec)
        self._send(party, pb.AttachResponse(proposal=proposal))

    def task(self, run: Run, party: str) -> None:
        """Ask a party for the open round, unless it has answered."""
        if party in run.tasks and party not in run.answers:
            message = pb.AttachResponse()  # filled in place: a body may be large
            message.task.job_id, message.task.round = run.row.job_id, run.round
            message.task.body = run.tasks[party]
            self._send(party, message)

    def receipted(self, party: str, submission: pb.Submission) -> None:
        """Notify a party that its submission is kept."""
        kept = pb.Receipted(job_id=submission.job_id, round=submission.round)
        self._send(party, pb.AttachResponse(receipted=kept))

    def ending(self, party: str, job_id: str, state: State) -> None:
        """Notify a party that a job is over."""
        ending = pb.Ending(job_id=job_id, state=state.value)
        self._send(party, pb.AttachResponse(ending=ending))

    def take(self) -> list[Send]:
        """Return and forget the messages."""
        messages, self.messages = self.messages, []
        return messages

    def _send(self, party: str, message: pb.AttachResponse) -> None:
        if party in self.sessions:
            self.messages.append(Send(party, self.sessions[party], message))
        elif self.elsewhere is not None:
            self.elsewhere(party, message)
