"""What a coordinator checks of a party's releases, and which of them it shows the party again."""

from dataclasses import replace

from colonnade.core.errors import BadInput
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.server.store import PartyRow
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.codec import release_from_proto


def with_newest(row: PartyRow, submission: pb.Submission) -> PartyRow:
    """Return the party's row with its newest release, to be shown to it at its next session.

    Every release must be of the submission's round and signed by the party's own ledger.
    """
    for message in submission.releases:
        released = release_from_proto(message)
        key, receipt = released.key, released.receipt
        if (key.job, key.round, key.account) != (submission.job_id, submission.round, ""):
            raise BadInput(f"party {row.name} sent a release of another job or round")
        signed = receipt.ledger_id == row.ledger_id and receipt.signed_by(row.ledger_key)
        if not signed or receipt.seq > MAX_UNITS:  # a database's integers end where a ledger's do
            raise BadInput(f"party {row.name} sent a release that its ledger did not sign")
        if receipt.seq > row.latest_seq:
            latest = message.SerializeToString(deterministic=True)
            row = replace(row, latest=latest, latest_seq=receipt.seq)
    return row
