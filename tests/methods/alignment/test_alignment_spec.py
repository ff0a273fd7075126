"""The specification: what it refuses, and that its name covers everything in it."""

from dataclasses import replace

import pytest
from support.alignment import members, prepared

from colonnade.core.errors import BadMessage
from colonnade.methods.alignment.codec import run_name, spec_from_bytes, spec_to_bytes
from colonnade.methods.alignment.normalise import IdColumn, IdRule, Repeated, UnicodeForm
from colonnade.methods.alignment.schedule import FIRST_WAVE, AlignmentStage, RoundSchedule
from colonnade.methods.alignment.sizes import answer_bytes, task_bytes
from colonnade.methods.alignment.spec import (
    MAX_BODY_BYTES,
    MAX_PARTIES,
    AlignmentSpec,
    Extension,
    Mode,
    default_chunk,
    max_chunk,
)
from colonnade.privacy.membership import MembershipNoise

SPEC = prepared(members([range(9)] * 3)).spec
OTHERS = [
    replace(SPEC, salt=b"\7" * 32),
    replace(SPEC, parts=SPEC.parts[::-1]),
    replace(SPEC, parts=(replace(SPEC.parts[0], max_people=10), *SPEC.parts[1:])),
    replace(SPEC, mode=Mode.LEFT),
    replace(SPEC, mode=Mode.INNER),
    replace(SPEC, ids=IdRule((IdColumn(UnicodeForm.NFC),))),
    replace(SPEC, ids=IdRule((IdColumn(UnicodeForm.NONE, trim=False),))),
    replace(SPEC, ids=IdRule((IdColumn(fold_case=True),))),
    replace(SPEC, ids=IdRule((IdColumn(digits_only=True), IdColumn()))),
    replace(SPEC, ids=IdRule((IdColumn(number=True),))),
    replace(SPEC, ids=IdRule(repeated=Repeated.FIRST)),
    replace(SPEC, noise=MembershipNoise(2, 45)),
    replace(SPEC, chunk=41),
    replace(SPEC, extends=Extension(b"\1" * 32, 100)),
    replace(SPEC, extends=Extension(b"\2" * 32, 100)),
    replace(SPEC, extends=Extension(b"\1" * 32, 101, min_new=7, runs=3)),
]


@pytest.mark.parametrize("spec", [SPEC, *OTHERS])
def test_a_specification_comes_back_from_its_bytes(spec: AlignmentSpec) -> None:
    assert spec_from_bytes(spec_to_bytes(spec)) == spec


def test_names_differ_if_anything_does() -> None:
    assert len({run_name(spec) for spec in (SPEC, *OTHERS)}) == 1 + len(OTHERS)


@pytest.mark.parametrize(
    "change",
    [
        {"salt": bytes(31)},
        {"parts": SPEC.parts[:1]},
        {"parts": (SPEC.parts[0], SPEC.parts[0])},
        {"parts": (SPEC.parts[0], replace(SPEC.parts[0], party="other"))},
        {"chunk": 0},
        {"chunk": max_chunk(3) + 1},
        {"parts": tuple(replace(part, max_people=2**31) for part in SPEC.parts)},
        # A million rounds, whose entries each party's ledger would keep for good.
        {"chunk": 1, "parts": tuple(replace(part, max_people=10**6) for part in SPEC.parts)},
    ],
)
def test_specifications_that_cannot_be_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        replace(SPEC, **change)  # type: ignore[arg-type]


def test_parts_and_extensions_out_of_range_are_refused() -> None:
    part = SPEC.parts[0]
    for change in ({"party": ""}, {"party": "a\n"}, {"public_key": b""}, {"max_people": 0}):
        with pytest.raises(ValueError, match=r"\w"):
            replace(part, **change)
    for previous, n_rows, min_new, runs in (
        (b"", 5, 1, 1),
        (bytes(32), 0, 1, 1),
        (bytes(32), 5, 0, 1),
        (bytes(32), 5, 1, 0),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            Extension(previous, n_rows, min_new, runs)


@pytest.mark.parametrize("raw", [b"", b"\xff", spec_to_bytes(SPEC) + b"\xf8\x7f\1", b"\x40\x05"])
def test_bytes_that_are_no_specification_are_refused(raw: bytes) -> None:
    with pytest.raises(BadMessage) as refused:
        spec_from_bytes(raw)
    assert refused.value.code == "bad_message"


def many(n_parties: int, chunk: int, *, max_people: int = 10**6) -> AlignmentSpec:
    parts = tuple(
        replace(SPEC.parts[0], party=f"p{k}", public_key=bytes([k]) * 32, max_people=max_people)
        for k in range(n_parties)
    )
    return replace(SPEC, parts=parts, chunk=chunk)


@pytest.mark.parametrize("n_parties", [2, 3, 8, MAX_PARTIES])
def test_messages_fit_whatever_the_chunk(n_parties: int) -> None:
    assert 1 <= default_chunk(n_parties) <= max_chunk(n_parties)
    spec = many(n_parties, max_chunk(n_parties))
    counts = (20 * spec.chunk,) * n_parties
    round_ = FIRST_WAVE + n_parties + 2  # in the middle of the pipeline
    for body in answer_bytes(spec, 0, round_, counts).values():
        assert body <= MAX_BODY_BYTES
    assert task_bytes(spec, 0, round_, counts) < 8 << 20
    assert task_bytes(spec, 0, RoundSchedule(spec, counts).rounds - 2, counts) < 8 << 20


def test_every_chunk_meets_every_party_once_in_order() -> None:
    schedule = RoundSchedule(many(4, 10, max_people=100), (35, 10, 1, 90))
    seen: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for round_ in range(schedule.rounds):
        if schedule.stage(round_) is not AlignmentStage.WAVE:
            continue
        for party in range(4):
            for visit in schedule.visits(round_, party):
                seen.setdefault((visit.owner, visit.chunk), []).append((visit.hop, party))
    assert set(seen) == {(k, c) for k, n in enumerate((4, 1, 1, 9)) for c in range(n)}
    for (owner, _), visits in seen.items():
        assert visits == [(hop, (owner + hop) % 4) for hop in range(5)]
    assert schedule.waves == 9 + 4
    assert [schedule.size(0, chunk) for chunk in range(4)] == [10, 10, 10, 5]


def test_rounds_outside_the_schedule_are_refused() -> None:
    schedule = RoundSchedule(SPEC, (100, 100, 100))
    with pytest.raises(ValueError, match="round"):
        schedule.stage(schedule.rounds)
    with pytest.raises(ValueError, match="yet"):
        answer_bytes(SPEC, 0, FIRST_WAVE)
    with pytest.raises(ValueError, match="yet"):
        task_bytes(SPEC, 0, FIRST_WAVE)
    with pytest.raises(ValueError, match="alignment"):
        SPEC.place("nobody")
