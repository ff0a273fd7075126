"""What a coordinator checks of a party's releases, and which of them it shows the party again."""

from collections.abc import Iterable
from dataclasses import replace

from colonnade.core.errors import BadInput
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.server.engine.heads import check_receipt
from colonnade.server.store.base import PartyRow
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import release_pb2
from colonnade.wire.codec import release_from_proto
from colonnade.wire.cohort import client_answers_from_proto


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
    if kept.releases != submission.releases:
        return False
    if kept.HasField("clients") != submission.HasField("clients"):
        return False
    before = client_answers_from_proto(kept.clients).by_client()
    again = client_answers_from_proto(submission.clients).by_client()
    return all(again[client] == before[client] for client in before.keys() & again.keys())
