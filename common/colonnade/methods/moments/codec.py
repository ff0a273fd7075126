"""Between the values of a moments job and their bytes: the specification, and tasks."""

from collections.abc import Sequence

from colonnade.core.errors import BadMessage
from colonnade.linear.ball import Projection
from colonnade.methods.base import Member, parts_of
from colonnade.methods.frank_wolfe.codec import FrankWolfeTask, step_from_proto, step_to_proto
from colonnade.methods.messages import (
    LABELS,
    LOSSES,
    copied,
    int64s,
    read,
    read_task,
    same_numbers,
)
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.moments.tasks import Task
from colonnade.v1 import job_pb2

_NUMBERS = tuple(each for each in same_numbers(job_pb2.Moments, MomentsSpec) if each != "overlap")


def spec_to_bytes(spec: MomentsSpec) -> bytes:
    """Encode a specification; who the parties are is said by the job's members."""
    message = job_pb2.Moments(
        labels=LABELS.write(spec.labels),
        loss=LOSSES.write(spec.loss),
        overlap=spec.overlap,
        **copied(spec, _NUMBERS),
    )
    return message.SerializeToString(deterministic=True)


def spec_from_bytes(body: bytes, members: Sequence[Member], population: int) -> MomentsSpec:
    """Decode a specification."""
    message = read(job_pb2.Moments, body, "the job's method")
    return MomentsSpec(
        n_rows=population,
        parts=parts_of(members),
        labels=LABELS.read(message.labels),
        loss=LOSSES.read(message.loss),
        overlap=tuple(message.overlap),
        **copied(message, _NUMBERS),
    )


def task_to_bytes(task: Task) -> bytes:
    """Encode a task; the round is said beside it."""
    body = job_pb2.TaskBody()
    asked = body.moments_round
    asked.SetInParent()
    if task.projection is not None:
        asked.projection.CopyFrom(projection_to_proto(task.projection))
    if task.sketches is not None:
        asked.sketches.extend(task.sketches.ravel().tolist())
    if task.public is not None:
        asked.screen.CopyFrom(step_to_proto(task.public, task.candidates))
    return body.SerializeToString(deterministic=True)


def task_from_bytes(
    body: bytes, *, round_: int, n_columns: int, n_features: int, sketch_dim: int
) -> Task:
    """Decode a task that fits a party's columns, or refuse it."""
    asked = read_task(body, "moments_round").moments_round
    sketches, screen = None, FrankWolfeTask(None)
    if asked.sketches:
        if len(asked.sketches) % sketch_dim:
            raise BadMessage(f"a task's sketches are not of the job's size {sketch_dim}")
        sketches = int64s(asked.sketches).reshape(-1, sketch_dim)
    if asked.HasField("screen"):
        screen = step_from_proto(asked.screen, n_features, sketch_dim)
    projection = asked.projection if asked.HasField("projection") else None
    try:
        return Task(
            round_,
            None if projection is None else projection_from_proto(projection, n_columns),
            sketches,
            screen.public,
            screen.candidates,
        )
    except ValueError as error:
        raise BadMessage(f"a task cannot be used: {error}") from None


def projection_to_proto(projection: Projection) -> job_pb2.Projection:
    """Encode a map of rows."""
    return job_pb2.Projection(
        coef=projection.coef.ravel().tolist(), offset=projection.offset.tolist()
    )


def projection_from_proto(message: job_pb2.Projection, n_columns: int) -> Projection:
    """Decode a map of rows of ``n_columns`` columns, or raise `ValueError`."""
    coef, offset = int64s(message.coef), int64s(message.offset)
    if coef.size != offset.size * n_columns:
        raise ValueError(f"its projection does not have {n_columns} columns")
    return Projection(coef.reshape(offset.size, n_columns), offset)
