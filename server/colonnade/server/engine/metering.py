"""Uplink bytes by job, round, party and kind, as they arrive.

Payload is what releases carry; wire is what the connection carries, with receipts, keys, framing
and encryption. What a message needs besides its releases counts as control, so the kinds add up.
"""

from collections.abc import Sequence

from colonnade.server.store.base import UplinkRow
from colonnade.v1 import federation_pb2 as pb

CONTROL = "control"


def control_row(job_id: str, round_: int, party: str, wire: int) -> UplinkRow:
    """Count a message without releases."""
    return UplinkRow(job_id, round_, party, CONTROL, wire_bytes=wire, messages=1)


def retry_row(submission: pb.Submission, party: str, wire: int) -> UplinkRow:
    """Count a submission that came before."""
    job_id, round_ = submission.job_id, submission.round
    return UplinkRow(job_id, round_, party, CONTROL, retry_bytes=wire)


def release_rows(submission: pb.Submission, party: str, wire: int) -> list[UplinkRow]:
    """Count a submission of releases: a row for each kind, and the rest as control."""
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
    rest = wire - sum(row.wire_bytes for row in rows)
    return [*rows, control_row(job_id, round_, party, rest)]


def client_rows(
    submission: pb.Submission, party: str, wire: int, *, new: Sequence[bytes]
) -> list[UplinkRow]:
    """Count clients' answers: only the ``new`` ones, because others came before.

    Who is in a sum has no bytes of its own, and the sum is one release.
    """
    job_id, round_, answers = submission.job_id, submission.round, submission.clients
    fresh, total = sum(map(len, new)), sum(map(len, answers.bodies))
    row = UplinkRow(
        job_id,
        round_,
        party,
        answers.kind,
        payload_bytes=fresh,
        wire_bytes=fresh,
        messages=sum(map(bool, new)),
        retry_bytes=total - fresh,
    )
    return [row, control_row(job_id, round_, party, wire - total)]
