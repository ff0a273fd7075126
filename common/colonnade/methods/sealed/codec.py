"""Between the values of a sealed job and their bytes: the specification, and tasks."""

from collections.abc import Sequence
from dataclasses import asdict

from colonnade.core.errors import BadMessage
from colonnade.methods.base import Member, parts_of
from colonnade.methods.messages import LOSSES, copied, read, read_task, same_numbers
from colonnade.methods.moments.codec import projection_from_proto, projection_to_proto
from colonnade.methods.sealed.products import Prices
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.methods.sealed.tasks import Relayed, SealedTask
from colonnade.v1 import job_pb2

_LISTS = ("overlap", "shields")
_NUMBERS = tuple(each for each in same_numbers(job_pb2.Sealed, SealedSpec) if each not in _LISTS)


def spec_to_bytes(spec: SealedSpec) -> bytes:
    """Encode a specification; who the parties are is said by the job's members."""
    message = job_pb2.Sealed(
        loss=LOSSES.write(spec.loss),
        prices=[job_pb2.SealedPrices(**asdict(each)) for each in spec.prices],
        overlap=spec.overlap,
        shields=spec.shields,
        **copied(spec, _NUMBERS),
    )
    return message.SerializeToString(deterministic=True)


def spec_from_bytes(body: bytes, members: Sequence[Member], population: int) -> SealedSpec:
    """Decode a specification."""
    message = read(job_pb2.Sealed, body, "the job's method")
    return SealedSpec(
        n_rows=population,
        parts=parts_of(members),
        prices=tuple(
            Prices(each.gram, each.cross, each.wide, each.label) for each in message.prices
        ),
        loss=LOSSES.read(message.loss),
        overlap=tuple(message.overlap),
        shields=tuple(message.shields),
        **copied(message, _NUMBERS),
    )


def task_to_bytes(task: SealedTask) -> bytes:
    """Encode a task; the round is said beside it."""
    body = job_pb2.TaskBody()
    asked = body.sealed_round
    asked.SetInParent()
    for projection, message in ((task.projection, "projection"), (task.label, "label")):
        if projection is not None:
            getattr(asked, message).CopyFrom(projection_to_proto(projection))
    for each in task.relayed:
        asked.relayed.add(party=each.party, kind=each.kind, body=each.body)
    return body.SerializeToString(deterministic=True)


def task_from_bytes(body: bytes, *, round_: int, n_columns: int) -> SealedTask:
    """Decode a task that fits a party's columns, or refuse it."""
    asked = read_task(body, "sealed_round").sealed_round
    try:
        projection, label = (
            projection_from_proto(getattr(asked, name), n_columns) if asked.HasField(name) else None
            for name in ("projection", "label")
        )
    except ValueError as error:
        raise BadMessage(f"a task cannot be used: {error}") from None
    relayed = tuple(Relayed(each.party, each.kind, each.body) for each in asked.relayed)
    return SealedTask(round_, projection, label, relayed)
