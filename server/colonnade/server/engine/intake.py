"""Take what parties send into a job: keys at enrolment, receipts and answers in a round."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from colonnade.core.errors import BadInput, NotEnrolled
from colonnade.ledger.receipts import verify
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.server.engine.heads import check_receipt, with_head
from colonnade.server.engine.offers import check_offer
from colonnade.server.engine.rounds import Run
from colonnade.server.store.base import PartyRow, Store
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import release_pb2
from colonnade.wire.codec import release_from_proto
from colonnade.wire.cohort import client_answers_from_proto
from colonnade.wire.session import PROTOCOL, enrolment_statement


def enrolled(
    known: PartyRow | None, request: pb.EnrolRequest, *, federation: str, party: str
) -> PartyRow | None:
    """Return the row of a party with the ledger that it enrols; None if that is nothing new.

    A ledger takes the place of the one that is enrolled if it continues it after a recovery. Any
    other of the same key is a copy, or the one that was replaced: its session will be refused, and
    it notices by what it is shown.
    """
    statement = enrolment_statement(federation, party, request.ledger_id, request.continues)
    signed = verify(request.ledger_key, request.signature, statement)
    if len(request.ledger_id) != 16 or not signed:
        raise BadInput("the enrolment is not signed by the ledger's key")
    if known is not None and known.ledger_key != request.ledger_key:
        raise NotEnrolled(
            f"party {party} is enrolled with another ledger key; the coordinator's operator "
            "must remove it if that ledger is lost"
        )
    if known is None:
        return PartyRow(party, request.ledger_id, request.ledger_key)
    if known.ledger_id not in request.continues or known.ledger_id == request.ledger_id:
        return None
    return replace(known, ledger_id=request.ledger_id, latest_seq=0)


def with_session(row: PartyRow, hello: pb.Hello, *, federation: str, now: float) -> PartyRow:
    """Return the row of a party with the session that its hello opens."""
    if hello.protocol != PROTOCOL:
        raise BadInput(
            f"party {row.name} speaks protocol {hello.protocol}, this coordinator {PROTOCOL}; "
            "update the older one"
        )
    check_offer(row.name, hello.offer)
    told = with_head(row, hello.head, federation=federation)
    offer = hello.offer.SerializeToString()
    return replace(told, epoch=row.epoch + 1, offer=offer, told_at=now)


def with_newest(row: PartyRow, releases: Iterable[release_pb2.Release]) -> PartyRow:
    """Return the party's row with its newest release, to be shown to it at its next session.

    Every one of ``releases`` must be signed by the party's own ledger.
    """
    for message in releases:
        receipt = release_from_proto(message).receipt
        signed = receipt.ledger_id == row.ledger_id and receipt.signed_by(row.ledger_key)
        if not signed or receipt.seq > MAX_UNITS:  # a database's integers end where a ledger's do
            raise BadInput(f"party {row.name} sent a release that its ledger did not sign")
        check_receipt(row, receipt)
        if receipt.seq > row.latest_seq:
            latest = message.SerializeToString(deterministic=True)
            row = replace(row, latest=latest, latest_seq=receipt.seq)
    return row


def same_answer(stored: bytes, submission: pb.Submission) -> bool:
    """Return whether a submission repeats what was kept; other clients may be in it this time."""
    kept = pb.Submission.FromString(stored)
    if any(release not in submission.releases for release in kept.releases):
        return False  # what was relayed is not kept: there may be more this time
    if kept.HasField("clients") != submission.HasField("clients"):
        return False
    before = client_answers_from_proto(kept.clients).by_client()
    again = client_answers_from_proto(submission.clients).by_client()
    return all(again[client] == before[client] for client in before.keys() & again.keys())


def keep(run: Run, party: str, submission: pb.Submission, answer: Any, wire: int) -> None:
    """Keep a checked answer and count it.

    It is written with the others of the round, at the latest at the next tick: nothing is sent
    before, and a party whose answer a crash takes away sends the same bytes again.
    """
    record = run.strategy.record(submission, party, answer, wire)
    run.unwritten.append(record)
    for row in record.uplink:
        run.count(row)
    run.strategy.take(run, party, submission.round, answer)


def write_answers(store: Store, run: Run) -> set[str]:
    """Write what was kept and not yet written; return whose it is."""
    for round_ in {answer.round for answer in run.unwritten}:
        bodies = {each.party: each.body for each in run.unwritten if each.round == round_}
        store.put_answers(run.row.job_id, round_, bodies)
    store.add_uplink([row for answer in run.unwritten for row in answer.uplink])
    parties = {answer.party for answer in run.unwritten}
    run.unwritten.clear()
    return parties
