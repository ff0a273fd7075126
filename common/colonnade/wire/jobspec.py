"""Between a `Job` and the bytes that name it.

The bytes are carried verbatim and never made again from the parsed form. A field that this program
does not know might matter for privacy, so it is refused, at the coordinator and at every party.
"""

import hashlib
import math
from collections.abc import Iterable

from colonnade.core.errors import BadMessage
from colonnade.core.fixedpoint import Bounds
from colonnade.methods.base import Member
from colonnade.methods.job import NO_LABEL, Job
from colonnade.methods.messages import read
from colonnade.methods.registry import kinds, method_of
from colonnade.v1 import job_pb2
from colonnade.wire.encodings import encoding_from_proto, encoding_to_proto

VERSION = 4
MAX_SPEC_BYTES = 4 << 20
MAX_NAME = 200


def job_to_bytes(job: Job) -> bytes:
    """Encode a job, once, to be submitted."""
    message = job_pb2.JobSpec(
        version=VERSION,
        salt=job.salt,
        name=job.name,
        population=job.population,
        delta=job.delta,
        party_timeout_s=job.party_timeout_s,
        label=feature_to_proto(job.label, job.label_bounds) if job.label else None,
        purpose=job.purpose,
        requested_by=job.requested_by,
        holdout=job.holdout,
        evaluation_units=job.evaluation_units,
    )
    message.method.kind, message.method.body = job.kind, method_of(job.kind).encode(job.method)
    for member in job.members:
        groups = member.groups or ("",) * len(member.features)
        features = map(feature_to_proto, member.features, member.bounds, member.fills, groups)
        message.members.add(
            party=member.party,
            dataset=member.dataset,
            features=features,
            holds_label=member.holds_label,
            clients=member.clients,
            encodings=map(encoding_to_proto, member.encodings),
            alignment=member.alignment,
        )
    return message.SerializeToString(deterministic=True)


def job_from_bytes(spec: bytes) -> Job:
    """Decode a job, or refuse it with the reason."""
    if len(spec) > MAX_SPEC_BYTES:
        raise BadMessage(f"the job's specification is larger than {MAX_SPEC_BYTES} bytes")
    message = read(job_pb2.JobSpec, spec, "the job's specification")
    if message.version != VERSION:
        raise BadMessage(
            f"the job's specification has version {message.version}; this program knows {VERSION}"
        )
    try:
        return _job_from_proto(message)
    except KeyError:
        raise BadMessage("the job's specification leaves a choice open or unknown") from None
    except (ValueError, ArithmeticError) as error:
        raise BadMessage(f"the job's specification cannot be used: {error}") from None


def question_of(spec: bytes) -> bytes:
    """Return a digest that two jobs share if they ask the same of the same tables.

    The salt, the job's name, who asks and what for, timeouts and the order of the parties are no
    part of a question.
    """
    message = job_pb2.JobSpec.FromString(spec)
    for field in ("salt", "name", "purpose", "requested_by", "party_timeout_s"):
        message.ClearField(field)
    order = sorted(range(len(message.members)), key=lambda at: message.members[at].party)
    asked = job_pb2.JobSpec()
    asked.CopyFrom(message)
    for place, at in enumerate(order):
        asked.members[place].CopyFrom(message.members[at])
    if message.method.kind in kinds():  # one that was registered once may be asked about still
        asked.method.body = method_of(message.method.kind).question(message.method.body, order)
    return hashlib.sha256(asked.SerializeToString(deterministic=True)).digest()


def feature_to_proto(
    name: str, bounds: Bounds, fill: float | None = None, group: str = ""
) -> job_pb2.Feature:
    """Encode a column and its bounds; ``fill`` is a feature's, and None for a label."""
    return job_pb2.Feature(name=name, low=bounds.low, high=bounds.high, fill=fill, group=group)


def feature_from_proto(message: job_pb2.Feature) -> tuple[str, Bounds]:
    """Decode a column and its bounds; `ValueError` unless they are usable."""
    if not 1 <= len(message.name) <= MAX_NAME or not message.name.isprintable():
        raise ValueError(f"a column's name has 1 to {MAX_NAME} printable characters")
    if len(message.group) > MAX_NAME or not message.group.isprintable():
        raise ValueError(f"a group's name has up to {MAX_NAME} printable characters")
    return message.name, Bounds(message.low, message.high)


def fill_from_proto(message: job_pb2.Feature) -> float:
    """Decode what stands for a missing value of a feature; `ValueError` if it is not said."""
    if not message.HasField("fill") or not math.isfinite(message.fill):
        raise ValueError("a feature has a finite fill, which stands for a missing value")
    return message.fill


def _job_from_proto(message: job_pb2.JobSpec) -> Job:
    members = tuple(_member_from_proto(member) for member in message.members)
    label, label_bounds = NO_LABEL
    if message.HasField("label"):
        label, label_bounds = feature_from_proto(message.label)
    if message.label.HasField("fill"):
        raise ValueError("a label has no fill")
    if message.label.group:
        raise ValueError("a label is in no group")
    return Job(
        name=message.name,
        salt=message.salt,
        delta=message.delta,
        party_timeout_s=message.party_timeout_s,
        members=members,
        label=label,
        label_bounds=label_bounds,
        method=method_of(message.method.kind).decode(
            message.method.body, members, message.population
        ),
        purpose=message.purpose,
        requested_by=message.requested_by,
        holdout=message.holdout,
        evaluation_units=message.evaluation_units,
    )


def _member_from_proto(message: job_pb2.Member) -> Member:
    columns = [feature_from_proto(feature) for feature in message.features]
    return Member(
        party=message.party,
        dataset=message.dataset,
        features=tuple(name for name, _ in columns),
        bounds=tuple(bounds for _, bounds in columns),
        fills=tuple(fill_from_proto(feature) for feature in message.features),
        holds_label=message.holds_label,
        clients=message.clients,
        groups=groups_from_proto(message.features),
        encodings=tuple(map(encoding_from_proto, message.encodings)),
        alignment=message.alignment,
    )


def groups_from_proto(features: Iterable[job_pb2.Feature]) -> tuple[str, ...]:
    """Return the group of each feature; nothing if none is in a group."""
    groups = tuple(feature.group for feature in features)
    return groups if any(groups) else ()
