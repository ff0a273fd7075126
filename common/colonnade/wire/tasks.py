"""Between a task, or a job's state, and its bytes.

The bytes of a task are written once, stored before they are sent, sent again verbatim, and bound
to the answer by the party's ledger.
"""

from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError

from colonnade.core.errors import BadMessage
from colonnade.methods.frank_wolfe.residual import TaskParameters
from colonnade.methods.moments.rows import Projection
from colonnade.methods.moments.tasks import Task as MomentsTask
from colonnade.v1 import job_pb2
from colonnade.wire.jobspec import refuse_unknown

# numpy's conversion of these would wrap; protobuf has read them as 64-bit integers already.
_INT64 = np.int64

_OTHER = "a task asks for nothing that this job knows; a newer coordinator needs a newer party"


@dataclass(frozen=True, slots=True)
class FrankWolfeTask:
    """What a task says: nothing in the opening, public numbers in a step."""

    public: TaskParameters | None
    candidates: tuple[int, ...] = ()


def task_to_bytes(task: FrankWolfeTask) -> bytes:
    """Encode a task of Frank-Wolfe."""
    body = job_pb2.TaskBody()
    if task.public is None:
        body.frank_wolfe_opening.SetInParent()
    else:
        body.frank_wolfe_step.MergeFrom(_step_to_proto(task.public, task.candidates))
    return body.SerializeToString(deterministic=True)


def task_from_bytes(body: bytes, *, n_features: int, sketch_dim: int) -> FrankWolfeTask:
    """Decode a task of Frank-Wolfe that fits a party's block, or refuse it."""
    message = _read(body)
    match message.WhichOneof("task"):
        case "frank_wolfe_opening":
            return FrankWolfeTask(None)
        case "frank_wolfe_step":
            return _step_from_proto(message.frank_wolfe_step, n_features, sketch_dim)
        case _:
            raise BadMessage(_OTHER)


def moments_task_to_bytes(task: MomentsTask) -> bytes:
    """Encode a task of moments; the round is said beside it."""
    body = job_pb2.TaskBody()
    asked = body.moments_round
    asked.SetInParent()
    if task.projection is not None:
        asked.projection.coef.extend(task.projection.coef.ravel().tolist())
        asked.projection.offset.extend(task.projection.offset.tolist())
    if task.sketches is not None:
        asked.sketches.extend(task.sketches.ravel().tolist())
    if task.public is not None:
        asked.screen.CopyFrom(_step_to_proto(task.public, task.candidates))
    return body.SerializeToString(deterministic=True)


def moments_task_from_bytes(
    body: bytes, *, round_: int, n_columns: int, n_features: int, sketch_dim: int
) -> MomentsTask:
    """Decode a task of moments that fits a party's columns, or refuse it."""
    message = _read(body)
    if message.WhichOneof("task") != "moments_round":
        raise BadMessage(_OTHER)
    asked = message.moments_round
    sketches, screen = None, FrankWolfeTask(None)
    if asked.sketches:
        if len(asked.sketches) % sketch_dim:
            raise BadMessage(f"a task's sketches are not of the job's size {sketch_dim}")
        sketches = np.array(asked.sketches, _INT64).reshape(-1, sketch_dim)
    if asked.HasField("screen"):
        screen = _step_from_proto(asked.screen, n_features, sketch_dim)
    projection = asked.projection if asked.HasField("projection") else None
    try:
        return MomentsTask(
            round_,
            None if projection is None else _projection_from_proto(projection, n_columns),
            sketches,
            screen.public,
            screen.candidates,
        )
    except ValueError as error:
        raise BadMessage(f"a task cannot be used: {error}") from None


def _read(body: bytes) -> job_pb2.TaskBody:
    try:
        message = job_pb2.TaskBody.FromString(body)
    except DecodeError:
        raise BadMessage("a task cannot be read") from None
    refuse_unknown(message, "a task")
    return message


def _step_to_proto(public: TaskParameters, candidates: tuple[int, ...]) -> job_pb2.FrankWolfeStep:
    return job_pb2.FrankWolfeStep(
        coef=public.coef.tolist(),
        q=public.q.tolist(),
        weight=public.weight,
        clip=public.clip,
        offset=public.offset,
        candidates=candidates,
    )


def _projection_from_proto(message: job_pb2.Projection, n_columns: int) -> Projection:
    coef, offset = np.array(message.coef, _INT64), np.array(message.offset, _INT64)
    if coef.size != offset.size * n_columns:
        raise ValueError(f"its projection does not have {n_columns} columns")
    return Projection(coef.reshape(offset.size, n_columns), offset)


def _step_from_proto(
    step: job_pb2.FrankWolfeStep, n_features: int, sketch_dim: int
) -> FrankWolfeTask:
    if len(step.coef) != n_features or len(step.q) not in (0, sketch_dim):
        raise BadMessage(
            f"a task has {len(step.coef)} coefficients and {len(step.q)} sketch entries; "
            f"the job has {n_features} and {sketch_dim}"
        )
    if len(step.candidates) > n_features:
        raise BadMessage("a task names more candidates than there are features")
    q = np.array(step.q, _INT64) if step.q else np.zeros(sketch_dim, _INT64)
    try:
        public = TaskParameters(
            coef=np.array(step.coef, _INT64),
            q=q,
            weight=step.weight,
            clip=step.clip,
            offset=step.offset,
        )
    except ValueError as error:
        raise BadMessage(f"a task cannot be used: {error}") from None
    return FrankWolfeTask(public, tuple(step.candidates))
