"""Between a task, or a job's state, and its bytes.

The bytes of a task are written once, stored before they are sent, sent again verbatim, and bound
to the answer by the party's ledger.
"""

from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError

from colonnade.core.errors import BadInput
from colonnade.optim.vertical.residual import Public
from colonnade.v1 import job_pb2
from colonnade.wire.jobspec import refuse_unknown

# numpy's conversion of these would wrap; protobuf has read them as 64-bit integers already.
_INT64 = np.int64


@dataclass(frozen=True, slots=True)
class FrankWolfeTask:
    """What a task says: nothing in the opening, public numbers in a step."""

    public: Public | None
    candidates: tuple[int, ...] = ()


def task_to_bytes(task: FrankWolfeTask) -> bytes:
    """Encode a task."""
    body = job_pb2.TaskBody()
    if task.public is None:
        body.frank_wolfe_opening.SetInParent()
    else:
        public = task.public
        body.frank_wolfe_step.MergeFrom(
            job_pb2.FrankWolfeStep(
                coef=public.coef.tolist(),
                q=public.q.tolist(),
                weight=public.weight,
                clip=public.clip,
                offset=public.offset,
                candidates=task.candidates,
            )
        )
    return body.SerializeToString(deterministic=True)


def task_from_bytes(body: bytes, *, n_features: int, sketch_dim: int) -> FrankWolfeTask:
    """Decode a task that fits a party's block, or refuse it."""
    try:
        message = job_pb2.TaskBody.FromString(body)
    except DecodeError:
        raise BadInput("a task cannot be read") from None
    refuse_unknown(message, "a task")
    match message.WhichOneof("task"):
        case "frank_wolfe_opening":
            return FrankWolfeTask(None)
        case "frank_wolfe_step":
            return _step_from_proto(message.frank_wolfe_step, n_features, sketch_dim)
        case _:
            raise BadInput("a task asks for nothing that this program knows; update it")


def _step_from_proto(
    step: job_pb2.FrankWolfeStep, n_features: int, sketch_dim: int
) -> FrankWolfeTask:
    if len(step.coef) != n_features or len(step.q) not in (0, sketch_dim):
        raise BadInput(
            f"a task has {len(step.coef)} coefficients and {len(step.q)} sketch entries; "
            f"the job has {n_features} and {sketch_dim}"
        )
    if len(step.candidates) > n_features:
        raise BadInput("a task names more candidates than there are features")
    q = np.array(step.q, _INT64) if step.q else np.zeros(sketch_dim, _INT64)
    try:
        public = Public(
            coef=np.array(step.coef, _INT64),
            q=q,
            weight=step.weight,
            clip=step.clip,
            offset=step.offset,
        )
    except ValueError as error:
        raise BadInput(f"a task cannot be used: {error}") from None
    return FrankWolfeTask(public, tuple(step.candidates))
