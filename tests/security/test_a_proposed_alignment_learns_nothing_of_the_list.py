"""Whether a party takes an alignment follows from its policy, not from numbers about its people.

A coordinator chooses the specification and may propose for nothing, as often as it likes. If a
number in it were compared with the list, halving it would find the list's exact length, and a
second day's length one person.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support.aligning import POLICY, alignment_job
from support.proposals import (
    EXTENDS,
    KNOWN,
    aligned_before,
    decision,
    extension,
    pair,
    vault_of,
    with_spec,
)

from colonnade.core.errors import BadMessage, ColonnadeError
from colonnade.methods.alignment.claims import learned
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.normalise import IdColumn, IdRule
from colonnade.methods.alignment.spec import AlignmentSpec, Mode
from colonnade.methods.job import job_id
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.v1 import alignment_pb2 as pb
from colonnade.wire.jobspec import job_to_bytes


def parts_with(spec: AlignmentSpec, most: int) -> Mapping[str, object]:
    return {"parts": (replace(spec.parts[0], max_people=most), *spec.parts[1:])}


def test_no_choice_of_the_longest_list_tells_how_long_the_list_is(tmp_path: Path) -> None:
    told = []
    for name, count in (("short", 20), ("long", 21)):
        sides = pair(tmp_path / name, KNOWN[:count], POLICY)
        vault, job = vault_of(sides["hospital"]), alignment_job(sides)
        assert isinstance(job.method, AlignmentJobSpec)
        spec = job.method.alignment
        told.append(
            [
                decision(vault, with_spec(job, **parts_with(spec, most)))
                for most in (1, 19, 20, 21, 22, 999, 1000, 1001)
            ]
        )
    assert told[0] == told[1]
    assert [accepted for accepted, *_ in told[0]] == [False] * 6 + [True, False]


def proposals(folder: Path, n_new: int, policy: str) -> list[tuple[bool, str, str]]:
    sides = pair(folder, [*KNOWN, *(f"NHS new {at}" for at in range(n_new))], policy)
    first = alignment_job(sides)
    assert isinstance(first.method, AlignmentJobSpec)
    aligned_before(sides["hospital"], first.method.alignment)
    vault = vault_of(sides["hospital"])
    return [
        decision(vault, extension(sides, first.method.alignment, min_new=each))
        for each in (1, 2, 3, 4, 99, 100, 101, 500)
    ]


def test_no_choice_of_the_fewest_new_people_tells_how_many_there_are(tmp_path: Path) -> None:
    told = [proposals(tmp_path / str(count), count, EXTENDS) for count in (0, 1, 3, 150)]
    assert told[0] == told[1] == told[2] == told[3]
    assert [accepted for accepted, *_ in told[0]] == [False] * 5 + [True, False, False]


def test_new_people_who_are_few_wait_and_are_not_listed(tmp_path: Path) -> None:
    for n_new, listed in ((3, 200), (150, 350)):
        folder = tmp_path / str(n_new)
        sides = pair(folder, [*KNOWN, *(f"NHS new {at}" for at in range(n_new))], EXTENDS)
        first = alignment_job(sides)
        assert isinstance(first.method, AlignmentJobSpec)
        aligned_before(sides["hospital"], first.method.alignment)
        vault = vault_of(sides["hospital"])
        job = extension(sides, first.method.alignment, min_new=100)
        assert vault.consider(job_to_bytes(job)).accepted
        aligner = vault._aligner
        assert aligner is not None
        assert len(aligner._open[job_id(job_to_bytes(job))].ids) == listed


def test_an_extension_needs_a_policy_that_says_so(tmp_path: Path) -> None:
    # In mode union a policy's word is that parties learn nothing of each other's people, and a
    # new person with an old row is one of another party's.
    told = proposals(tmp_path, 150, POLICY)
    assert not any(accepted for accepted, *_ in told)
    assert {code for _, code, _ in told} == {"policy_refused"}


def test_what_an_extension_tells_is_said_before_it_is_approved() -> None:
    first, later = (dict(learned([Mode.UNION], extends=each)) for each in (False, True))
    assert "exactly" not in first["each party"]
    assert "exactly" not in first["coordinator alone"]
    assert "exactly, which of its new people" in later["each party"]
    assert "exactly, how many people" in later["coordinator alone"]


def test_an_alignment_that_is_asked_nonsense_still_counts_as_unpaid(tmp_path: Path) -> None:
    sides = pair(tmp_path, KNOWN[:20], POLICY)
    vault, accepted = vault_of(sides["hospital"]), 0
    vault._unpaid.most = 3  # as many a day, to be quick
    for number in range(6):
        job = with_spec(alignment_job(sides), salt=number.to_bytes(32))
        accepted += vault.consider(job_to_bytes(job)).accepted
        name = job_id(job_to_bytes(job))
        with pytest.raises(ColonnadeError):
            vault.answer(name, 0, b"\xff")
        vault.close_job(name)
    assert accepted == 3


def test_an_alignment_that_begins_in_the_middle_is_charged_nothing(tmp_path: Path) -> None:
    sides = pair(tmp_path, KNOWN[:20], POLICY)
    vault, job = vault_of(sides["hospital"]), alignment_job(sides)
    name = job_id(job_to_bytes(job))
    assert vault.consider(job_to_bytes(job)).accepted
    for task in (pb.AlignmentTask(round=4), pb.AlignmentTask(macs=b"x")):
        with pytest.raises(BadMessage):
            vault.answer(name, task.round, task.SerializeToString())
    assert sides["hospital"].ledger.budget(MEMBERSHIP).spent == 0
    vault.answer(name, 0, b"")
    assert sides["hospital"].ledger.budget(MEMBERSHIP).spent == job.max_units("hospital")


@pytest.mark.parametrize(
    "change",
    [
        {"mode": Mode.INNER},
        {"ids": IdRule((IdColumn(digits_only=True),))},
        {"runs": 2},
        {"n_rows": 299},
        {"previous": b"\1" * 32},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_extension_is_of_the_alignment_that_the_party_kept(
    tmp_path: Path, change: dict[str, object]
) -> None:
    sides = pair(tmp_path, KNOWN, EXTENDS + EXTENDS + 'ids = ["digits-only"]\n')
    first = alignment_job(sides)
    assert isinstance(first.method, AlignmentJobSpec)
    aligned_before(sides["hospital"], first.method.alignment)
    vault = vault_of(sides["hospital"])
    right = extension(sides, first.method.alignment, min_new=100)
    assert decision(vault, right)[0]
    assert isinstance(right.method, AlignmentJobSpec)
    extends = right.method.alignment.extends
    assert extends is not None
    if {*change} & {"runs", "n_rows", "previous"}:
        change = {"extends": replace(extends, **change)}  # type: ignore[arg-type]
    assert decision(vault, with_spec(right, **change))[:2] == (False, "policy_refused")


def test_a_job_says_no_smaller_delta_than_its_dummies_have(tmp_path: Path) -> None:
    sides = pair(tmp_path, KNOWN, POLICY)
    vault, job = vault_of(sides["hospital"]), alignment_job(sides)
    assert decision(vault, replace(job, delta=job.delta / 2))[:2] == (False, "bad_message")
    assert decision(vault, job)[0]


def test_a_coordinator_does_not_choose_how_ids_are_written(tmp_path: Path) -> None:
    # Two ids that are alike as digits: a free refusal of that rule alone would tell so.
    told = []
    for number, people in enumerate((["A-1", "A-2"], ["A-1", "B-1"])):
        sides = pair(tmp_path / str(number), people, POLICY)
        job = with_spec(alignment_job(sides), ids=IdRule((IdColumn(digits_only=True),)))
        told.append(decision(vault_of(sides["hospital"]), job)[:2])
    assert told == [(False, "policy_refused")] * 2


POLICIES = {
    "mode": POLICY.replace('"union", ', ""),
    "peers": POLICY.replace('["*"]', '["bank"]'),
    "epsilon": POLICY.replace("max_epsilon = 2.0", "max_epsilon = 1.9"),
    "delta": POLICY.replace("max_delta = 1e-3", "max_delta = 1e-6"),
    "until": POLICY + "until = 2020-01-01\n",
    "ids": POLICY + 'ids = ["number"]\n',
    "repeated": POLICY + 'repeated = "first"\n',
    "coordinator": POLICY.replace("coordinator/hub", "coordinator/other")
    + POLICY.replace("max_people = 1000", "max_people = 999"),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
def test_whatever_a_policy_narrows_is_refused(tmp_path: Path, policy: str) -> None:
    sides = pair(tmp_path, KNOWN, policy)
    vault = vault_of(sides["hospital"])
    assert decision(vault, alignment_job(sides))[:2] == (False, "policy_refused")
