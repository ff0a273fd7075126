"""Uplink bytes by job, round, party and kind, as they arrive.

Payload is what releases carry; wire is what the connection carries, with receipts, keys, framing
and encryption. What a message needs besides its releases counts as control, so the kinds add up.
"""

from collections.abc import Sequence

from colonnade.methods.admm.spec import DISPLACEMENT
from colonnade.server.engine.rounds import CONTROL
from colonnade.server.store.base import UplinkRow
from colonnade.v1 import federation_pb2 as pb


def control_row(job_id: str, round_: int, party: str, wire: int) -> UplinkRow:
    """Count a message without releases."""
    return UplinkRow(job_id, round_, party, CONTROL, wire_bytes=wire, messages=1)


def retry_row(submission: pb.Submission, party: str, wire: int) -> UplinkRow:
    """Count a submission that came before."""
    job_id, round_ = submission.job_id, submission.round
    return UplinkRow(job_id, round_, party, CONTROL, retry_bytes=wire)


def submission_rows(
    submission: pb.Submission, party: str, wire: int, *, new: Sequence[bytes] = ()
) -> list[UplinkRow]:
    """Count a submission: a row for each kind, and the rest as control.

    Of clients' answers only the ``new`` ones count; others came before.
    """
    job_id, round_ = submission.job_id, submission.round
    rows = [
        UplinkRow(
            job_id,
            round_,
            party,
            release.key.kind,
            payload_bytes=len(release.body),
            wire_bytes=release.ByteSize(),
            messages=1,
        )
        for release in submission.releases
    ]
    if submission.HasField("clients"):
        rows = [_of_clients(submission, party, new)]
    rest = wire - sum(row.wire_bytes + row.retry_bytes for row in rows)
    return [*rows, control_row(job_id, round_, party, rest)]


def _of_clients(submission: pb.Submission, party: str, new: Sequence[bytes]) -> UplinkRow:
    fresh = sum(map(len, new))
    return UplinkRow(
        submission.job_id,
        submission.round,
        party,
        DISPLACEMENT,
        payload_bytes=fresh,
        wire_bytes=fresh,
        messages=len(new),
        retry_bytes=sum(map(len, submission.clients.bodies)) - fresh,
    )
