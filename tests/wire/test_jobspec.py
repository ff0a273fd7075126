"""A job's bytes: what goes in comes out, and nothing else is let in."""

import dataclasses
import datetime as dt
import hashlib
import math
import struct
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from support.specs import OpenSpec

from colonnade.core.errors import BadInput, BadMessage
from colonnade.core.fixedpoint import Bounds
from colonnade.data.encoding import Encoding
from colonnade.data.kinds import Bool, Category, Date, Ordinal
from colonnade.methods.base import MAX_ROUNDS, Member, MethodSpec, Part
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec, PartySampling
from colonnade.methods.job import Job, job_id
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.problem import Labels, Loss
from colonnade.server.methods.registry import algorithm_of
from colonnade.v1 import job_pb2
from colonnade.wire.jobspec import MAX_SPEC_BYTES, job_from_bytes, job_to_bytes

PRICE = 2**40


ENCODINGS = (
    Encoding("age", column="Age (years)", missing=("?", ""), missing_indicator=True),
    Encoding("ward", Category(("a", "b"), other="c", baseline="a", fill="b")),
    Encoding("grade", Category(("a", "b"), unknown=True)),
    Encoding("smoker", Bool()),
    Encoding("married", Bool(("ja",), ("nein",)), missing=()),
    Encoding("since", Date(dt.date(2020, 2, 29), "%d.%m.%Y")),
    Encoding("pain", Ordinal(("no", "yes"), (1.5, 2.5), unknown=True)),
)
MEMBERS = (
    Member(
        "hospital",
        "ab" * 16,
        ("age", "bmi"),
        (Bounds(0, 120), Bounds(10, 60)),
        (50, 22),
        True,
        groups=("body", ""),
        encodings=ENCODINGS,
        alignment="ef" * 32,
    ),
    Member(
        "laboratory", "cd" * 16, ("iron",), (Bounds(-1, 1),), (0.25,), False, alignment="ef" * 32
    ),
)


# In neither method has a field the value that an absent one would have.
def frank_wolfe() -> FrankWolfeSpec:
    return FrankWolfeSpec(
        n_rows=1000,
        blocks=(
            Block("hospital", ("age", "bmi"), 0.7, 2, True, 0.5, ("body", "")),
            Block("laboratory", ("iron",), 1.5, 1, False, 0.25),
        ),
        rounds=9,
        sketch_dim=64,
        sketch_entries=2,
        dense_sketch=True,
        select_units=PRICE,
        share_units=2 * PRICE,
        label_units=3 * PRICE,
        mean_units=4 * PRICE,
        labels=Labels.SKETCHED,
        loss=Loss.LOGISTIC,
        sampling=PartySampling.GIVEN,
        parties_per_round=2,
        features_per_round=1,
        prior=0.02,
        clip=2.5,
        share_clip=1.5,
        local_rounds=3,
    )


def moments() -> MomentsSpec:
    return MomentsSpec(
        n_rows=1000,
        parts=(
            Part("hospital", ("age", "bmi"), True, ("body", "")),
            Part("laboratory", ("iron",), False),
        ),
        mean_units=PRICE,
        gram_units=2 * PRICE,
        share_units=3 * PRICE,
        cross_units=4 * PRICE,
        directions=2,
        probes=5,
        sketch_dim=64,
        labels=Labels.SKETCHED,
        loss=Loss.LOGISTIC,
        label_units=5 * PRICE,
        marginal_units=6 * PRICE,
        keep=1,
        screen_units=7 * PRICE,
        radius=2.1,
        penalty=0.2,
        label_weight=1.4,
        reach=1.7,
        share_clip=0.5,
        probe_clip=1.1,
        cross_clip=0.9,
        presence=True,
        overlap=(700,),
    )


def example(method: MethodSpec | None = None, **changes: Any) -> Job:
    """Return a job; Frank-Wolfe's unless said otherwise."""
    job = Job(
        "a study",
        b"0123456789abcdef",
        1e-7,
        77,
        MEMBERS,
        "y",
        Bounds(-2, 5),
        method or frank_wolfe(),
        "a purpose",
        "spiffe://study/operator/ana",
        holdout=125,
        evaluation_units=12345,
    )
    return replace(job, **changes)


SPEC, MOMENTS = job_to_bytes(example()), job_to_bytes(example(moments()))
SPECS = {"frank-wolfe": SPEC, "moments": MOMENTS}


def fields_of(spec: OpenSpec) -> list[tuple[Message, Any]]:
    """Return every scalar field at every level, with the message that holds it."""
    return scalars(spec.job) + scalars(spec.method)


def scalars(message: Message) -> list[tuple[Message, Any]]:
    found = []
    for field in message.DESCRIPTOR.fields:
        if field.name == "method":  # opened apart
            continue
        if field.message_type is None:
            if not field.is_repeated:
                found.append((message, field))
        elif field.is_repeated:
            for child in getattr(message, field.name):
                found += scalars(child)
        elif message.HasField(field.name):
            found += scalars(getattr(message, field.name))
    return found


@pytest.mark.parametrize("method", [frank_wolfe(), moments()], ids=lambda method: method.kind)
def test_every_field_of_a_job_makes_the_round_trip(method: MethodSpec) -> None:
    job = example(method)
    for holder in (job, job.method, job.members[0], job.method.parts[0]):
        for field in dataclasses.fields(holder):  # type: ignore[arg-type]
            if field.name == "clients":
                continue  # none in a job over columns; see test_admm_wire
            absent = field.default
            assert getattr(holder, field.name) != absent, f"{field.name} would not be noticed"
    assert job_from_bytes(job_to_bytes(job)) == job


def test_groups_and_encodings_that_cannot_be_are_refused() -> None:
    member = MEMBERS[0]
    for change in ({"groups": ("body",)}, {"encodings": (ENCODINGS[0], ENCODINGS[0])}):
        with pytest.raises(ValueError, match=r"group|twice"):
            replace(member, **change)
    with pytest.raises(ValueError, match="about groups"):
        example(members=(replace(member, groups=("", "")), MEMBERS[1]))
    spoilers: list[tuple[int, Any]] = list(
        zip(
            (1, 1, 6, 5, 0, 0),
            [
                lambda each: each.category_kind.levels.append("a"),
                lambda each: each.category_kind.levels.extend(map(str, range(2000))),
                lambda each: each.ordinal_kind.values.append(1.0),
                lambda each: setattr(each.date_kind, "reference", "yesterday"),
                lambda each: setattr(each, "name", "a\nb"),
                lambda each: each.missing.extend("x" * 1000),
            ],
            strict=True,
        )
    )
    for place, spoil in spoilers:
        message = job_pb2.JobSpec.FromString(SPEC)
        spoil(message.members[0].encodings[place])
        with pytest.raises(BadMessage):
            job_from_bytes(message.SerializeToString())
    message = job_pb2.JobSpec.FromString(SPEC)
    message.label.group = "body"
    with pytest.raises(BadMessage, match="label"):
        job_from_bytes(message.SerializeToString())


def test_plain_choices_make_the_round_trip() -> None:
    plain = replace(
        frank_wolfe(), dense_sketch=False, sampling=PartySampling.NICE, loss=Loss.SQUARED
    )
    for method in (
        plain,
        replace(plain, sampling=PartySampling.SERIAL, mean_units=0, local_rounds=0),
        replace(moments(), share_units=0, cross_units=0, keep=0, loss=Loss.SQUARED),
    ):
        other = example(method)
        assert job_from_bytes(job_to_bytes(other)) == other


def test_a_job_is_named_by_the_digest_of_its_bytes() -> None:
    assert job_id(SPEC) == hashlib.sha256(SPEC).hexdigest()
    assert job_id(job_to_bytes(example(salt=bytes(16)))) != job_id(SPEC)


def _holders(spec: OpenSpec) -> dict[str, Message]:
    return {
        "job": spec.job,
        "member": spec.job.members[1],
        "feature": spec.job.members[0].features[1],
        "encoding": spec.job.members[0].encodings[0],
        "category": spec.job.members[0].encodings[1].category_kind,
        "label": spec.job.label,
        "kind": spec.job.method,
        "method": spec.method,
        "block": spec.method.blocks[0] if hasattr(spec.method, "blocks") else spec.job,
        "moments": spec.method,
    }


@pytest.mark.parametrize(
    "level",
    [
        "job",
        "member",
        "feature",
        "encoding",
        "category",
        "label",
        "kind",
        "method",
        "block",
        "moments",
    ],
)
def test_an_unknown_field_is_refused_at_every_level(level: str) -> None:
    spec = OpenSpec.of(MOMENTS if level == "moments" else SPEC)
    _holders(spec)[level].MergeFromString(b"\xa0\x3f\x01")  # field 1012, varint 1
    with pytest.raises(BadInput, match="fields"):
        job_from_bytes(spec.to_bytes())


def test_another_version_and_an_oversized_specification_are_refused() -> None:
    message = job_pb2.JobSpec.FromString(SPEC)
    for version in (3, 5):
        message.version = version
        with pytest.raises(BadInput, match=f"version {version}"):
            job_from_bytes(message.SerializeToString())
    with pytest.raises(BadInput, match="larger than"):
        job_from_bytes(bytes(MAX_SPEC_BYTES + 1))


def test_a_feature_without_a_fill_and_a_label_with_one_are_refused() -> None:
    message = job_pb2.JobSpec.FromString(SPEC)
    message.members[1].features[0].ClearField("fill")
    with pytest.raises(BadInput, match="feature"):
        job_from_bytes(message.SerializeToString())
    message = job_pb2.JobSpec.FromString(SPEC)
    message.label.fill = 0.0
    with pytest.raises(BadInput, match="label"):
        job_from_bytes(message.SerializeToString())
    for fills in ((50.0,), (50.0, 22.0, 1.0), (50.0, math.nan)):
        with pytest.raises(ValueError, match="finite"):
            replace(MEMBERS[0], fills=fills)


def test_a_choice_that_is_not_said_or_not_known_is_refused() -> None:
    choices = [("frank-wolfe", name) for name in ("labels", "loss", "sampling")]
    for method, name in [*choices, ("moments", "labels"), ("moments", "loss")]:
        for value in (0, 17):
            spec = OpenSpec.of(SPECS[method])
            setattr(spec.method, name, value)
            with pytest.raises(BadInput, match="choice"):
                job_from_bytes(spec.to_bytes())


def test_a_method_that_is_not_said_not_known_or_not_its_own_is_refused() -> None:
    for kind in ("", "newton", "moments"):  # the last one has another message
        message = job_pb2.JobSpec.FromString(SPEC)
        message.method.kind = kind
        with pytest.raises(BadMessage):
            job_from_bytes(message.SerializeToString())
    message.ClearField("method")
    with pytest.raises(BadMessage, match="frank-wolfe, moments, sealed, admm"):
        job_from_bytes(message.SerializeToString())


# For each field, values that no job may have; the largest that the wire can carry among them.
IMPOSSIBLE: dict[str, list[Any]] = {
    "version": [0, 2**32 - 1],
    "salt": [b"", bytes(15), bytes(17)],
    "name": ["", "x" * 201, "a\nb"],
    "group": ["x" * 201, "a\nb"],
    "population": [0, 10**9 + 1, 2**63, 2**64 - 1],
    "delta": [0.0, 1.0, -1e-6, math.nan, math.inf],
    "party_timeout_s": [0, 2**32 - 1],
    "low": [math.nan, -math.inf, 1e300],
    "high": [math.nan, math.inf, -1e300],
    "fill": [math.nan, math.inf, -math.inf],  # and any number for the label
    "radius": [0.0, -1.0, math.nan, math.inf],
    "probability": [0.0, -0.5, 1.5, math.nan, math.inf],
    "rounds": [0, MAX_ROUNDS + 1, 2**32 - 1],
    "sketch_dim": [0, 2**31, 2**32 - 1],
    "select_units": [0, 2**63, 2**64 - 1],
    "share_units": [0, 2**63, 2**64 - 1],
    "label_units": [0, 2**63, 2**64 - 1],
    "mean_units": [2**63, 2**64 - 1],
    "parties_per_round": [0, 3, 2**32 - 1],
    "prior": [0.0, -1.0, math.nan, math.inf],
    "clip": [0.0, -1.0, math.nan, math.inf],
    "share_clip": [0.0, -1.0, math.nan, math.inf],
}
IMPOSSIBLE_MOMENTS: dict[str, list[Any]] = {
    "population": [0, 2**28 + 1, 2**64 - 1],
    "radius": [0.0, -1.0, math.nan, math.inf],
    "sketch_dim": [0, 2**31, 2**32 - 1],
    "mean_units": [0, 2**63, 2**64 - 1],
    "gram_units": [0, 2**63, 2**64 - 1],
    "share_units": [0, 2**63, 2**64 - 1],
    "cross_units": [0, 2**63, 2**64 - 1],
    "label_units": [0, 2**63, 2**64 - 1],
    "marginal_units": [0, 2**63, 2**64 - 1],
    "screen_units": [0, 2**63, 2**64 - 1],
    "directions": [0, 6, 2**32 - 1],  # more than probes
    "probes": [0, 1],  # fewer than directions
    **{
        name: [-1.0, 101.0, math.nan, math.inf]
        for name in ("penalty", "label_weight", "reach", "share_clip", "probe_clip", "cross_clip")
    },
}


@pytest.mark.parametrize(
    ("method", "name"),
    [("frank-wolfe", name) for name in sorted(IMPOSSIBLE)]
    + [("moments", name) for name in sorted(IMPOSSIBLE_MOMENTS)],
)
def test_impossible_numbers_are_refused_in_one_line(method: str, name: str) -> None:
    spec = SPECS[method]
    impossible = (IMPOSSIBLE if method == "frank-wolfe" else IMPOSSIBLE_MOMENTS)[name]
    places = [
        k
        for k, (held, field) in enumerate(fields_of(OpenSpec.of(spec)))
        # The level that fills a category has the name of a feature's fill.
        if field.name == name and not (name == "fill" and isinstance(held, job_pb2.CategoryKind))
    ]
    assert places
    for place in places:
        for value in impossible:
            changed = OpenSpec.of(spec)
            holder, field = fields_of(changed)[place]
            setattr(holder, field.name, value)
            with pytest.raises(BadInput) as refused:
                job_from_bytes(changed.to_bytes())
            assert len(str(refused.value).splitlines()) == 1


def test_what_no_message_could_carry_is_refused() -> None:
    for method in (frank_wolfe(), moments()):
        wide = replace(method, n_rows=10**6, sketch_dim=2**20)
        with pytest.raises(ValueError, match="large"):
            example(wide)


@given(st.binary(max_size=400))
def test_random_bytes_are_refused_and_raise_nothing_else(noise: bytes) -> None:
    with pytest.raises(BadInput):
        job_from_bytes(noise)


_INTEGERS = (0, 1, 2, 7, 2**31, 2**32 - 1, 2**53, 2**63, 2**64 - 1)
_FLOATS = (0.0, -0.0, 1e-320, 0.5, 1e300, math.nan, math.inf, -math.inf)
_OTHERS = ("", "x", "\0", b"", b"0123456789abcdef", True, False)
_NUMBERS = st.sampled_from([*_INTEGERS, *_FLOATS, *_OTHERS])


@given(
    st.sampled_from([SPEC, MOMENTS]),
    st.lists(st.tuples(st.integers(0, 10**6), _NUMBERS), min_size=1, max_size=3),
)
def test_a_mutated_job_is_refused_or_can_be_run(
    base: bytes, changes: list[tuple[int, Any]]
) -> None:
    mutated = OpenSpec.of(base)
    for place, value in changes:
        fields = fields_of(mutated)
        holder, field = fields[place % len(fields)]
        try:
            setattr(holder, field.name, value)
        except (TypeError, ValueError, OverflowError):
            continue  # not of the field's type
    spec = mutated.to_bytes()
    try:
        job = job_from_bytes(spec)
    except BadInput:
        return
    steps = algorithm_of(job, job_id(spec))  # prices and sizes exist, or the job was refused
    start = steps.start()
    assert steps.decode(steps.encode(start)).round == 0
    assert steps.model(start).features


@given(
    st.sampled_from([SPEC, MOMENTS]),
    st.integers(0, len(SPEC) - 1),
    st.binary(min_size=1, max_size=9),
)
def test_spliced_bytes_raise_nothing_but_a_refusal(base: bytes, place: int, noise: bytes) -> None:
    for spec in (base[:place], base[:place] + noise, base[:place] + noise + base[place + 1 :]):
        try:
            found = job_from_bytes(spec)
        except BadInput:
            continue
        assert found.max_units(found.members[0].party) > 0  # what is let through can be priced


def test_deep_nesting_is_refused() -> None:
    deep = b""
    for _ in range(200):
        deep = b"\x3a" + _varint(len(deep)) + deep  # field 7 inside field 7
    with pytest.raises(BadInput):
        job_from_bytes(deep + struct.pack("<B", 0xFF))


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])
