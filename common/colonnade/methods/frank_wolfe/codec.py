"""Between Frank-Wolfe's values and their bytes: the specification, and tasks.

The bytes of a task are written once, stored before they are sent, sent again verbatim, and bound
to the answer by the party's ledger.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.errors import BadMessage
from colonnade.methods.base import Member
from colonnade.methods.frank_wolfe.residual import TaskParameters
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec, PartySampling
from colonnade.methods.messages import (
    LABELS,
    LOSSES,
    Choices,
    copied,
    int64s,
    read,
    read_task,
    same_numbers,
)
from colonnade.v1 import job_pb2

_SAMPLINGS = Choices(
    {
        job_pb2.SAMPLING_ALL: PartySampling.ALL,
        job_pb2.SAMPLING_SERIAL: PartySampling.SERIAL,
        job_pb2.SAMPLING_NICE: PartySampling.NICE,
        job_pb2.SAMPLING_GIVEN: PartySampling.GIVEN,
    }
)
_NUMBERS = same_numbers(job_pb2.FrankWolfe, FrankWolfeSpec)


def spec_to_bytes(spec: FrankWolfeSpec) -> bytes:
    """Encode a specification; who the parties are is said by the job's members."""
    message = job_pb2.FrankWolfe(
        labels=LABELS.write(spec.labels),
        loss=LOSSES.write(spec.loss),
        sampling=_SAMPLINGS.write(spec.sampling),
        **copied(spec, _NUMBERS),
    )
    for block in spec.blocks:
        message.blocks.add(radius=block.radius, shares=block.shares, probability=block.probability)
    return message.SerializeToString(deterministic=True)


def spec_from_bytes(body: bytes, members: Sequence[Member], population: int) -> FrankWolfeSpec:
    """Decode a specification."""
    message = read(job_pb2.FrankWolfe, body, "the job's method")
    if len(message.blocks) != len(members):
        raise ValueError("it has other blocks than members")
    blocks = tuple(
        Block(
            party=member.party,
            features=member.features,
            radius=block.radius,
            shares=block.shares,
            holds_label=member.holds_label,
            probability=block.probability,
            groups=member.groups,
        )
        for member, block in zip(members, message.blocks, strict=True)
    )
    return FrankWolfeSpec(
        n_rows=population,
        blocks=blocks,
        labels=LABELS.read(message.labels),
        loss=LOSSES.read(message.loss),
        sampling=_SAMPLINGS.read(message.sampling),
        **copied(message, _NUMBERS),
    )


def question(body: bytes, order: Sequence[int]) -> bytes:
    """Return a specification with the blocks in another order of the members."""
    message = job_pb2.FrankWolfe.FromString(body)
    asked = job_pb2.FrankWolfe.FromString(body)
    for place, at in enumerate(order):
        asked.blocks[place].CopyFrom(message.blocks[at])
    return asked.SerializeToString(deterministic=True)


@dataclass(frozen=True, slots=True)
class FrankWolfeTask:
    """What a task says: nothing in the opening, public numbers in a step."""

    public: TaskParameters | None
    candidates: tuple[int, ...] = ()


def task_to_bytes(task: FrankWolfeTask) -> bytes:
    """Encode a task."""
    body = job_pb2.TaskBody()
    if task.public is None:
        body.frank_wolfe_opening.SetInParent()
    else:
        body.frank_wolfe_step.MergeFrom(step_to_proto(task.public, task.candidates))
    return body.SerializeToString(deterministic=True)


def task_from_bytes(body: bytes, *, n_features: int, sketch_dim: int) -> FrankWolfeTask:
    """Decode a task that fits a party's block, or refuse it."""
    message = read_task(body, "frank_wolfe_opening", "frank_wolfe_step")
    if message.HasField("frank_wolfe_opening"):
        return FrankWolfeTask(None)
    return step_from_proto(message.frank_wolfe_step, n_features, sketch_dim)


def step_to_proto(public: TaskParameters, candidates: tuple[int, ...]) -> job_pb2.FrankWolfeStep:
    """Encode what shapes a residual, and the features to choose from."""
    return job_pb2.FrankWolfeStep(
        coef=public.coef.tolist(),
        q=public.q.tolist(),
        weight=public.weight,
        clip=public.clip,
        offset=public.offset,
        candidates=candidates,
    )


def step_from_proto(
    step: job_pb2.FrankWolfeStep, n_features: int, sketch_dim: int
) -> FrankWolfeTask:
    """Decode what shapes a residual, and the features to choose from, or refuse it."""
    if len(step.coef) != n_features or len(step.q) not in (0, sketch_dim):
        raise BadMessage(
            f"a task has {len(step.coef)} coefficients and {len(step.q)} sketch entries; "
            f"the job has {n_features} and {sketch_dim}"
        )
    if len(step.candidates) > n_features:
        raise BadMessage("a task names more candidates than there are features")
    try:
        public = TaskParameters(
            coef=int64s(step.coef),
            q=int64s(step.q) if step.q else np.zeros(sketch_dim, np.int64),
            weight=step.weight,
            clip=step.clip,
            offset=step.offset,
        )
    except ValueError as error:
        raise BadMessage(f"a task cannot be used: {error}") from None
    return FrankWolfeTask(public, tuple(step.candidates))
