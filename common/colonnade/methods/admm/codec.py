"""Between the values of federated ADMM and their bytes: the specification, and tasks."""

import math
from collections.abc import Callable, Sequence

from colonnade.core.arrays import IntArray
from colonnade.linear.losses import LOGISTIC, SQUARED
from colonnade.linear.penalties import Penalty
from colonnade.methods.admm.choices import Aggregate, ClientSampling, Variant
from colonnade.methods.admm.job_spec import AdmmJobSpec, ClientPart
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks, read_step, write_step
from colonnade.methods.base import Member
from colonnade.methods.messages import Choices, copied, int64s, read, read_task, same_numbers
from colonnade.v1 import job_pb2

_LOSSES = Choices({job_pb2.LOSS_SQUARED: SQUARED, job_pb2.LOSS_LOGISTIC: LOGISTIC})
_SAMPLINGS = Choices(
    {
        job_pb2.CLIENT_SAMPLING_FIXED: ClientSampling.FIXED,
        job_pb2.CLIENT_SAMPLING_POISSON: ClientSampling.POISSON,
    }
)
_VARIANTS = Choices(
    {
        job_pb2.ADMM_VARIANT_PAPER: Variant.PAPER,
        job_pb2.ADMM_VARIANT_PLANNED: Variant.PLANNED,
        job_pb2.ADMM_VARIANT_GRADIENT: Variant.GRADIENT,
    }
)
_AGGREGATES = Choices(
    {
        job_pb2.CLIENT_AGGREGATE_NONE: Aggregate.NONE,
        job_pb2.CLIENT_AGGREGATE_HOST: Aggregate.HOST,
        job_pb2.CLIENT_AGGREGATE_COHORT: Aggregate.COHORT,
    }
)
_NUMBERS = tuple(
    name
    for name in same_numbers(job_pb2.Admm, AdmmSpec)
    if name != "radii"  # written as a list
)


def spec_to_bytes(job: AdmmJobSpec) -> bytes:
    """Encode a specification; who has how many clients is said by the job's members."""
    spec, penalty = job.spec, job.spec.penalty
    message = job_pb2.Admm(
        sampling=_SAMPLINGS.write(spec.sampling),
        variant=_VARIANTS.write(spec.variant),
        aggregate=_AGGREGATES.write(spec.aggregate),
        radii=spec.radii,
        loss=_LOSSES.write(spec.loss),
        l1=penalty.l1,
        l2=penalty.l2,
        box=0.0 if math.isinf(penalty.bound) else penalty.bound,
        round_timeout_s=job.round_timeout_s,
        keys=job.keys,
        **copied(spec, _NUMBERS),
    )
    return message.SerializeToString(deterministic=True)


def spec_from_bytes(body: bytes, members: Sequence[Member], population: int) -> AdmmJobSpec:
    """Decode a specification."""
    message = read(job_pb2.Admm, body, "the job's method")
    if not members:
        raise ValueError("it has no parties")
    spec = AdmmSpec(
        n_clients=population,
        n_features=len(members[0].features),
        sampling=_SAMPLINGS.read(message.sampling),
        variant=_VARIANTS.read(message.variant),
        aggregate=_AGGREGATES.read(message.aggregate),
        radii=tuple(message.radii),
        loss=_LOSSES.read(message.loss),
        penalty=Penalty(message.l1, message.l2, message.box or math.inf),
        **copied(message, _NUMBERS),
    )
    parts = tuple(ClientPart(each.party, each.features, each.clients) for each in members)
    return AdmmJobSpec(parts, spec, message.round_timeout_s, tuple(message.keys))


def question(body: bytes, order: Sequence[int]) -> bytes:  # noqa: ARG001
    """Return a specification without its timeout, and without what is in the order of members."""
    message = job_pb2.Admm.FromString(body)
    message.ClearField("round_timeout_s")
    message.ClearField("keys")
    return message.SerializeToString(deterministic=True)


def tasks_to_bytes(asked: ClientTasks) -> bytes:
    """Encode what a party's clients are asked, numbered in the party's own order."""
    body = job_pb2.TaskBody()
    write_step(body.admm_step, asked)
    return body.SerializeToString(deterministic=True)


def without_points(task: bytes) -> bytes:
    """Return a task that says whom it asks and no more: its points follow from the job's state."""
    body = job_pb2.TaskBody.FromString(task)
    body.admm_step.ClearField("points")
    return body.SerializeToString(deterministic=True)


def asked_in(task: bytes) -> tuple[IntArray, IntArray]:
    """Return whom a task of one's own asks, and the rounds that the questions were made in."""
    step = job_pb2.TaskBody.FromString(task).admm_step
    return int64s(step.clients), int64s(step.rounds)


def step_in(task: bytes) -> int:
    """Return the round of the job that a task of one's own asks about."""
    step = job_pb2.TaskBody.FromString(task).admm_step
    return step.step or max(step.rounds, default=1)


def tasks_from_bytes(
    body: bytes, *, n_clients: int, point_size: Callable[[int], int]
) -> ClientTasks:
    """Decode a task that fits a party's clients, or refuse it.

    ``point_size`` says how many numbers a client is sent in a round.
    """
    step = read_task(body, "admm_step").admm_step
    return read_step(step, n_clients=n_clients, point_size=point_size)
