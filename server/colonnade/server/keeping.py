"""Take what parties say into a job: keys at enrolment, answers in a round."""

from dataclasses import replace
from typing import Any

from colonnade.core.errors import BadInput, NotEnrolled
from colonnade.privacy.receipts import verify
from colonnade.server.metering import submission_rows
from colonnade.server.run import Answer, Run
from colonnade.server.store import PartyRow, Store
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.clients import Said, said_to_bytes
from colonnade.wire.session import enrolment_statement


def enrolled(
    known: PartyRow | None, request: pb.EnrolRequest, *, federation: str, party: str
) -> PartyRow | None:
    """Return the row of a party with the ledger that it enrols; None if that is nothing new."""
    statement = enrolment_statement(federation, party, request.ledger_id)
    signed = verify(request.ledger_key, request.signature, statement)
    if len(request.ledger_id) != 16 or not signed:
        raise BadInput("the enrolment is not signed by the ledger's key")
    if known is not None and known.ledger_key != request.ledger_key:
        raise NotEnrolled(
            f"party {party} is enrolled with another ledger key; the coordinator's operator "
            "must remove it if that ledger is lost"
        )
    row = known or PartyRow(party, request.ledger_id, request.ledger_key)
    if known is not None and row.ledger_id == request.ledger_id:
        return None
    return replace(row, ledger_id=request.ledger_id, latest_seq=0)


def keep(run: Run, party: str, submission: pb.Submission, answer: Any, wire: int) -> None:
    """Keep a checked answer and count it.

    It is written with the others of the round, at the latest at the next tick: nothing is sent
    before, and a party whose answer a crash takes away sends the same bytes again.
    """
    if isinstance(answer, Said):  # what came before in answer to another task is not kept again
        rows = submission_rows(submission, party, wire, new=answer.bodies)
        body = said_to_bytes(submission.job_id, submission.round, answer)
    else:
        rows = submission_rows(submission, party, wire)
        body = submission.SerializeToString(deterministic=True)
    run.unwritten.append(Answer(submission.round, party, body, rows))
    for row in rows:
        run.count(row)
    run.take(party, submission.round, answer)


def write_answers(store: Store, run: Run) -> set[str]:
    """Write what was kept and not yet written; return whose it is."""
    for round_ in {answer.round for answer in run.unwritten}:
        bodies = {each.party: each.body for each in run.unwritten if each.round == round_}
        store.put_answers(run.row.job_id, round_, bodies)
    store.add_uplink([row for answer in run.unwritten for row in answer.uplink])
    parties = {answer.party for answer in run.unwritten}
    run.unwritten.clear()
    return parties
