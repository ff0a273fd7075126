"""Alignment as a registered method: a job without a model."""

from collections.abc import Sequence
from typing import Any

from colonnade.methods.alignment.codec import run_name, spec_from_bytes, spec_to_bytes
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.base import Member, Method, Unit
from colonnade.privacy.membership import MEMBERSHIP


def _decode(body: bytes, members: Sequence[Member], population: int) -> AlignmentJobSpec:
    """Read a specification; the job's members and population must follow from it."""
    spec = AlignmentJobSpec(spec_from_bytes(body))
    if population != spec.population:
        raise ValueError("an alignment's population is the most people that its lists can name")
    if any(member.dataset or member.alignment for member in members):
        raise ValueError("an alignment is of no ingested table")
    return spec


def _describe(spec: AlignmentJobSpec, party: str) -> dict[str, Any]:
    alignment = spec.alignment
    return {
        "alignment": run_name(alignment).hex(),
        "mode": alignment.mode.value,
        "max_people": alignment.parts[alignment.place(party)].max_people,
        "membership_epsilon": float(alignment.noise.epsilon),
        "membership_delta": alignment.noise.delta,
    }


ALIGNMENT: Method[AlignmentJobSpec] = Method(
    kind=AlignmentJobSpec.kind,
    unit=Unit.RECORD,
    encode=lambda spec: spec_to_bytes(spec.alignment),
    decode=_decode,
    describe=_describe,
    section="alignment",
    model=False,
    account=MEMBERSHIP,
)
