"""The model that a party scores with: computed here, from releases that its peers signed.

Privacy: a coordinator solves, so it could name coefficients of its choice, one after the other. A
party takes none: it computes them from the releases of a job that it took part in, each under the
key that it pinned for the sender, its own as its ledger stored them, and compares the digest. What
a colluding peer signs anew gives another model, which finds the rows answered (`record`).
"""

import hashlib
from collections.abc import Mapping

from colonnade.core.errors import BadInput
from colonnade.data.integer_scores import model_digest
from colonnade.data.model import LinearModel
from colonnade.ledger.ledger import Ledger, Released
from colonnade.methods.base import Unit
from colonnade.methods.job import Job, job_id
from colonnade.methods.prediction.refusals import ModelMismatch, PartyMissing
from colonnade.methods.prediction.spec import PredictionSpec
from colonnade.methods.replay import BadEvidence, check_receipts, replayed
from colonnade.v1 import release_pb2
from colonnade.wire.codec import release_from_proto
from colonnade.wire.jobspec import job_from_bytes


def training_job(spec: PredictionSpec, party: str) -> tuple[str, Job]:
    """Return the job that the model is of, and its name; refuse one that this party is not in."""
    job = job_from_bytes(spec.training_job)
    members = [member.party for member in job.members]
    if job.unit is not Unit.RECORD or party not in members:
        raise BadEvidence("the model is of no job over columns that this party took part in")
    scoring = [part.party for part in spec.parts]
    if sorted([*scoring, *spec.middle]) != sorted(members):
        raise PartyMissing(
            "every party of the model scores, or the request declares the middle of its features"
        )
    if scoring != [name for name in members if name in scoring]:
        raise BadEvidence("the parties stand in another order than in the model's job")
    return job_id(spec.training_job), job


def computed_model(
    spec: PredictionSpec, name: str, job: Job, *, ledger: Ledger, keys: Mapping[str, bytes]
) -> LinearModel:
    """Return the model, or refuse evidence that does not lead to the one that is asked for."""
    own = ledger.opened.party
    pinned = {**keys, own: bytes.fromhex(ledger.opened.public_key)}
    shown = [(party, _read(each)) for party, releases in spec.evidence for each in releases]
    check_receipts(shown, pinned)
    for party, release in shown:
        if party == own and not _stored(ledger, release):
            raise BadEvidence("a release shown as this party's own is not in its ledger")
    model = replayed(job, name, shown, spec.solution)
    if model_digest(model) != spec.model:
        raise ModelMismatch(
            "the job's releases lead to another model than the one asked for; with equal versions "
            "of the program everywhere, somebody changed its coefficients"
        )
    return model


def _read(body: bytes) -> Released:
    try:
        return release_from_proto(release_pb2.Release.FromString(body))
    except (BadInput, ValueError):
        raise BadEvidence("a release shown for the model cannot be read") from None


def _stored(ledger: Ledger, release: Released) -> bool:
    kept = ledger.state.stored.get(release.key)
    return kept is not None and kept.body_sha256 == hashlib.sha256(release.body).hexdigest()
