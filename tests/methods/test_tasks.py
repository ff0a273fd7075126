"""A task's bytes, as a party reads them from a coordinator that it does not trust."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.core.errors import BadInput
from colonnade.linear.ball import MAX_COEF as MAX_PROJECTION
from colonnade.linear.ball import MAX_OFFSET, Projection
from colonnade.methods.frank_wolfe.codec import FrankWolfeTask, task_from_bytes, task_to_bytes
from colonnade.methods.frank_wolfe.residual import (
    MAX_CLIP,
    MAX_COEF,
    MAX_Q,
    WEIGHT_UNIT,
    TaskParameters,
)
from colonnade.methods.moments import codec as moments_codec
from colonnade.methods.moments.rows import MAX_SKETCH
from colonnade.methods.moments.tasks import Task as MomentsTask
from colonnade.v1 import job_pb2

FEATURES, DIM = 3, 8
PUBLIC = TaskParameters(
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
        with pytest.raises(BadInput, match="fields"):
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


COLUMNS = FEATURES + 1
PROJECTION = Projection(
    np.array([[1, -MAX_PROJECTION, 0, 4], [5, 6, MAX_PROJECTION, -8]]),
    np.array([MAX_OFFSET, -MAX_OFFSET]),
)
SKETCHES = np.array([[MAX_SKETCH, *range(DIM - 1)], [-MAX_SKETCH, *range(DIM - 1)]])
INNER = MomentsTask(7, PROJECTION, SKETCHES)
SCREEN = MomentsTask(2, public=PUBLIC, candidates=(0, 2))


def read_moments(body: bytes, round_: int = 7) -> MomentsTask:
    return moments_codec.task_from_bytes(
        body, round_=round_, n_columns=COLUMNS, n_features=FEATURES, sketch_dim=DIM
    )


@pytest.mark.parametrize("task", [MomentsTask(0), MomentsTask(4, PROJECTION), INNER, SCREEN])
def test_a_task_of_moments_makes_the_round_trip(task: MomentsTask) -> None:
    body = moments_codec.task_to_bytes(task)
    found = read_moments(body, task.round)
    assert repr(found) == repr(task)
    assert moments_codec.task_to_bytes(found) == body


def changed_moments(**values: list[int]) -> bytes:
    message = job_pb2.TaskBody.FromString(moments_codec.task_to_bytes(INNER))
    asked = message.moments_round
    holders = {"coef": asked.projection, "offset": asked.projection, "sketches": asked}
    for name, value in values.items():
        del getattr(holders[name], name)[:]
        getattr(holders[name], name).extend(value)
    return message.SerializeToString()


@pytest.mark.parametrize(
    "body",
    [
        changed_moments(coef=[1] * 7),
        changed_moments(coef=[]),
        changed_moments(coef=[], offset=[]),
        changed_moments(offset=[1, 2, 3]),
        changed_moments(coef=[MAX_PROJECTION + 1] * 8),
        changed_moments(coef=[-(2**63)] * 8),
        changed_moments(offset=[MAX_OFFSET + 1] * 2),
        changed_moments(offset=[-(2**63)] * 2),
        changed_moments(sketches=[1] * (DIM + 1)),
        changed_moments(sketches=[MAX_SKETCH + 1] * DIM),
        changed_moments(sketches=[-(2**63)] * DIM),
        STEP,
        b"",
        b"\xff",
    ],
)
def test_a_task_of_moments_that_does_not_fit_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput) as refused:
        read_moments(body)
    assert len(str(refused.value).splitlines()) == 1


def test_a_task_of_one_method_is_none_of_the_other() -> None:
    with pytest.raises(BadInput, match="knows"):
        read(moments_codec.task_to_bytes(INNER))


def test_unknown_fields_of_a_task_of_moments_are_refused_at_every_level() -> None:
    unknown = b"\xa0\x3f\x01"
    for level in ("moments_round", "projection", "screen"):
        task = SCREEN if level == "screen" else INNER
        message = job_pb2.TaskBody.FromString(moments_codec.task_to_bytes(task))
        asked = message.moments_round
        holder = asked if level == "moments_round" else getattr(asked, level)
        holder.MergeFromString(unknown)
        with pytest.raises(BadInput, match="fields"):
            read_moments(message.SerializeToString())


@given(st.binary(max_size=200), st.integers(0, 300))
def test_random_bytes_in_a_task_of_moments_raise_nothing_but_a_refusal(
    noise: bytes, place: int
) -> None:
    whole = moments_codec.task_to_bytes(INNER)
    for body in (noise, whole + noise, noise + whole, whole[:place] + noise + whole[place:]):
        try:
            task = read_moments(body)
        except BadInput:
            continue
        assert task.projection is None or task.projection.coef.shape[1] == COLUMNS
