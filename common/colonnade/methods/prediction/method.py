"""Prediction as a registered method: a job without a model of its own, and without a price."""

from collections.abc import Sequence
from typing import Any

from colonnade.methods.base import Member, Method, Unit
from colonnade.methods.prediction.claims import PROMISE
from colonnade.methods.prediction.codec import spec_from_bytes, spec_to_bytes
from colonnade.methods.prediction.spec import PredictionSpec
from colonnade.privacy.disclosure import PREDICTION as ACCOUNT


def _decode(body: bytes, members: Sequence[Member], population: int) -> PredictionSpec:
    """Read a specification; the job's population must follow from it."""
    spec = spec_from_bytes(body)
    if population != spec.population:
        raise ValueError("a prediction's population is the rows of the tables")
    if any(member.dataset for member in members):
        raise ValueError("a prediction names no version of a table; parties announce theirs")
    return spec


def _describe(spec: PredictionSpec, party: str) -> dict[str, Any]:
    return {
        "model": spec.model.hex(),
        "receiver": spec.receiver,
        "purpose": spec.purpose,
        "rows": spec.count,
        "receives": party == spec.receiver,
        "middle": list(spec.middle),
        "promise": PROMISE,
    }


PREDICTION: Method[PredictionSpec] = Method(
    kind=PredictionSpec.kind,
    unit=Unit.RECORD,
    encode=spec_to_bytes,
    decode=_decode,
    describe=_describe,
    section="prediction",
    model=False,
    account=ACCOUNT,
)
