"""A task's bytes, as a party reads them from a coordinator that it does not trust."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.core.errors import BadInput
from colonnade.optim.vertical.residual import MAX_CLIP, MAX_COEF, MAX_Q, WEIGHT_UNIT, Public
from colonnade.v1 import job_pb2
from colonnade.wire.tasks import FrankWolfeTask, task_from_bytes, task_to_bytes

FEATURES, DIM = 3, 8
PUBLIC = Public(
    coef=np.array([5, -MAX_COEF, 0]),
    q=np.array([MAX_Q, -1, 0, 2, 3, 4, 5, -MAX_Q]),
    weight=WEIGHT_UNIT,
    clip=MAX_CLIP,
    offset=-MAX_COEF,
)
STEP = task_to_bytes(FrankWolfeTask(PUBLIC, (0, 2)))


def read(body: bytes) -> FrankWolfeTask:
    return task_from_bytes(body, n_features=FEATURES, sketch_dim=DIM)


def changed(**values: object) -> bytes:
    message = job_pb2.TaskBody.FromString(STEP)
    step = message.frank_wolfe_step
    for name, value in values.items():
        step.ClearField(name)
        step.MergeFrom(job_pb2.FrankWolfeStep(**{name: value}))  # type: ignore[arg-type]
    return message.SerializeToString()


def test_a_task_makes_the_round_trip() -> None:
    task = read(STEP)
    assert task.public is not None
    assert task.public.coef.tolist() == PUBLIC.coef.tolist()
    assert task.public.q.tolist() == PUBLIC.q.tolist()
    limits = (task.public.weight, task.public.clip, task.public.offset)
    assert limits == (PUBLIC.weight, PUBLIC.clip, PUBLIC.offset)
    assert task.candidates == (0, 2)
    assert read(task_to_bytes(FrankWolfeTask(None))) == FrankWolfeTask(None)


def test_the_same_task_has_the_same_bytes() -> None:
    assert task_to_bytes(read(STEP)) == STEP


def test_an_absent_sketch_is_all_zero() -> None:
    task = read(changed(q=[]))
    assert task.public is not None
    assert not task.public.q.any()
    assert task.public.q.size == DIM


@pytest.mark.parametrize(
    "body",
    [
        changed(coef=[1, 2]),
        changed(coef=[1, 2, 3, 4]),
        changed(q=[1] * (DIM - 1)),
        changed(q=[1] * (DIM + 1)),
        changed(candidates=[0, 1, 2, 0]),
        changed(coef=[2**63 - 1, 0, 0]),
        changed(coef=[-(2**63), 0, 0]),
        changed(q=[-(2**63)] * DIM),
        changed(q=[MAX_Q + 1] * DIM),
        changed(weight=WEIGHT_UNIT + 1),
        changed(weight=2**64 - 1),
        changed(clip=0),
        changed(clip=MAX_CLIP + 1),
        changed(clip=2**64 - 1),
        changed(offset=MAX_COEF + 1),
        changed(offset=-(2**63)),
        b"",
        b"\xff",
    ],
)
def test_what_does_not_fit_the_job_or_the_fixed_point_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput) as refused:
        read(body)
    assert len(str(refused.value).splitlines()) == 1


def test_unknown_fields_are_refused_at_both_levels() -> None:
    unknown = b"\xa0\x3f\x01"
    message = job_pb2.TaskBody.FromString(STEP)
    message.frank_wolfe_step.MergeFromString(unknown)
    for body in (STEP + unknown, message.SerializeToString()):
        with pytest.raises(BadInput, match="fields that this program does not know"):
            read(body)


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_a_refusal(noise: bytes) -> None:
    for body in (noise, STEP + noise, noise + STEP):
        try:
            task = read(body)
        except BadInput:
            continue
        assert task.public is None or task.public.coef.size == FEATURES


@given(st.integers(0, len(STEP) - 1), st.integers(0, 255))
def test_a_flipped_byte_is_refused_or_another_task(place: int, value: int) -> None:
    body = STEP[:place] + bytes([value]) + STEP[place + 1 :]
    try:
        task = read(body)
    except BadInput:
        return
    assert body == STEP or task.public is None or task_to_bytes(task) != STEP
