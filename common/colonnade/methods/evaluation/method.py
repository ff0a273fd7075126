"""Evaluation as a registered method, and its bytes."""

from collections.abc import Sequence
from typing import Any

from colonnade.methods.base import Member, Method, Part, Unit
from colonnade.methods.evaluation.metrics import expected_error
from colonnade.methods.evaluation.spec import EvaluationSpec
from colonnade.methods.messages import LOSSES, read
from colonnade.v1 import evaluation_pb2 as pb


def spec_to_bytes(spec: EvaluationSpec) -> bytes:
    """Encode a specification; who the party is is said by the job's member."""
    message = pb.Evaluation(
        training=bytes.fromhex(spec.training),
        run=bytes.fromhex(spec.run),
        model=spec.model,
        holdout=spec.holdout,
        units=spec.units,
        buckets=spec.buckets,
        loss=LOSSES.write(spec.loss),
    )
    return message.SerializeToString(deterministic=True)


def spec_from_bytes(body: bytes, members: Sequence[Member], population: int) -> EvaluationSpec:
    """Decode a specification."""
    message = read(pb.Evaluation, body, "the job's method")
    if len(members) != 1:
        raise ValueError("an evaluation has one party")
    (member,) = members
    return EvaluationSpec(
        training=message.training.hex(),
        run=message.run.hex(),
        model=message.model,
        holdout=message.holdout,
        n_rows=population,
        part=Part(member.party, member.features, member.holds_label, member.groups),
        units=message.units,
        buckets=message.buckets,
        loss=LOSSES.read(message.loss),
    )


def _describe(spec: EvaluationSpec, party: str) -> dict[str, Any]:
    del party
    return {"evaluates": spec.training[:12], "expected_error": expected_error(spec)}


EVALUATION: Method[EvaluationSpec] = Method(
    kind=EvaluationSpec.kind,
    unit=Unit.RECORD,
    encode=spec_to_bytes,
    decode=spec_from_bytes,
    describe=_describe,
    fits=False,  # it names rows of the whole table: with some left out, others would be meant
)
