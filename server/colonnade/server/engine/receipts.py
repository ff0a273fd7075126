"""What a coordinator checks of a party's releases, and which of them it shows the party again."""

from dataclasses import replace

from colonnade.core.errors import BadInput
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.server.engine.heads import check_receipt
from colonnade.server.store.base import PartyRow
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.clients import client_answers_from_proto, newest_release
from colonnade.wire.codec import release_from_proto

_MAX_ACCOUNT = 64


def with_newest(row: PartyRow, submission: pb.Submission) -> PartyRow:
    """Return the party's row with its newest release, to be shown to it at its next session.

    Every release must be of the submission's round and signed by the party's own ledger. Of
    clients' answers one is signed, and the ledger's chain covers the others.
    """
    newest = newest_release(submission)
    for message in [*submission.releases, *([] if newest is None else [newest])]:
        released = release_from_proto(message)
        key, receipt = released.key, released.receipt
        mine = (key.job, key.round, key.account) == (submission.job_id, submission.round, "")
        if message is newest:
            mine = len(key.account) <= _MAX_ACCOUNT
        if not mine:
            raise BadInput(f"party {row.name} sent a release of another job or round")
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
    if not submission.HasField("clients"):
        return stored == submission.SerializeToString(deterministic=True)
    before = client_answers_from_proto(pb.Submission.FromString(stored).clients).by_client()
    again = client_answers_from_proto(submission.clients).by_client()
    return all(again[client] == before[client] for client in before.keys() & again.keys())
