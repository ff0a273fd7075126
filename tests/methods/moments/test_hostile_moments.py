"""A coordinator that means harm, against a party's side of a moments job."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.federation import founded, make_moments_job
from support.vaults import ME, OTHER, ledger_of, refusal, vault_of

from colonnade.core.errors import BadMessage, ColonnadeError, RequestConflict
from colonnade.ledger.ledger import Ledger
from colonnade.linear.ball import MAX_COEF as MAX_PROJECTION
from colonnade.linear.ball import MAX_OFFSET, Projection
from colonnade.methods.frank_wolfe.codec import FrankWolfeTask, task_to_bytes
from colonnade.methods.frank_wolfe.residual import (
    MAX_CLIP,
    MAX_COEF,
    MAX_Q,
    WEIGHT_UNIT,
    TaskParameters,
)
from colonnade.methods.job import Job, job_id
from colonnade.methods.moments import codec as moments_codec
from colonnade.methods.moments.rows import MAX_SKETCH
from colonnade.methods.moments.spec import MomentsSpec, Stage
from colonnade.methods.moments.tasks import Task
from colonnade.methods.problem import Labels
from colonnade.party.vault.vault import Vault
from colonnade.wire.jobspec import job_to_bytes

DIM, N_FEATURES = 64, 3
MEANS = moments_codec.task_to_bytes(Task(0))
SCREENED: dict[str, Any] = {"keep": 2}


def spec_of(salt: int = 0, **changes: Any) -> tuple[Job, MomentsSpec, bytes, str]:
    job = make_moments_job(founded(), [ME, OTHER], salt=salt, **changes)
    assert isinstance(job.method, MomentsSpec)
    spec = job_to_bytes(job)
    return job, job.method, spec, job_id(spec)


def task_of(spec: MomentsSpec, stage: Stage, draw: np.random.Generator, *, extreme: bool) -> bytes:
    """Return a task of the stage with numbers as wild as the wire lets through."""
    part = spec.part(ME)

    def numbers(limit: int, *shape: int) -> Any:
        if extreme:
            return draw.choice(np.array([-limit, 0, limit]), shape)
        return draw.integers(-limit, limit, shape, endpoint=True)

    def projection(rows: int) -> Projection:
        return Projection(
            numbers(MAX_PROJECTION, rows, spec.n_columns(part)), numbers(MAX_OFFSET, rows)
        )

    if stage is Stage.MEANS:
        return MEANS
    if stage is Stage.SCREEN:
        public = TaskParameters(
            coef=numbers(MAX_COEF, N_FEATURES),
            q=numbers(MAX_Q, DIM),
            weight=int(draw.integers(0, WEIGHT_UNIT, endpoint=True)),
            clip=int(draw.integers(1, MAX_CLIP, endpoint=True)),
            offset=int(numbers(MAX_COEF)),
        )
        return moments_codec.task_to_bytes(Task(0, public=public, candidates=(0, 2)))
    rows = {
        Stage.LABEL: 1,
        Stage.GRAM: spec.n_gram(part),
        Stage.SHARE: spec.n_directions(part),
        Stage.CROSS: spec.n_probes(part),
    }[stage]
    sketches = numbers(MAX_SKETCH, spec.n_others(part), DIM) if stage is Stage.CROSS else None
    return moments_codec.task_to_bytes(Task(0, projection(rows), sketches))


@pytest.fixture
def admitted() -> tuple[Vault, Ledger, str, MomentsSpec]:
    job, spec, body, name = spec_of(**SCREENED)
    ledger = ledger_of(2 * job.max_units(ME))
    vault = vault_of(ledger)
    assert vault.consider(body).accepted
    return vault, ledger, name, spec


@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize(
    "changes", [{}, SCREENED, {"labels": Labels.SKETCHED, "keep": 1}], ids=["plain", "wide", "own"]
)
def test_any_numbers_in_any_order_cost_what_was_set_aside_and_not_more(
    changes: dict[str, Any], extreme: bool
) -> None:
    job, spec, body, name = spec_of(**changes)
    ledger = ledger_of(10 * job.max_units(ME))
    vault, draw = vault_of(ledger), np.random.default_rng(3)
    assert vault.consider(body).accepted
    stages = spec.stages()
    for round_ in draw.permutation(len(stages)):
        task = task_of(spec, stages[round_], draw, extreme=extreme)
        released = vault.answer(name, int(round_), task)
        again = vault.answer(name, int(round_), task)
        assert [each.body for each in again] == [each.body for each in released]
        assert [each.key.kind for each in released] == list(
            spec.round_kinds(int(round_), spec.part(ME))
        )
        for each in released:
            assert len(each.body) == spec.body_bytes(ME, each.key.kind)
    assert ledger.budget().spent == job.max_units(ME)


def test_a_used_key_is_never_drawn_for_again(
    admitted: tuple[Vault, Ledger, str, MomentsSpec],
) -> None:
    vault, ledger, name, spec = admitted
    draw = np.random.default_rng(4)
    for round_, stage in enumerate(spec.stages()):
        vault.answer(name, round_, task_of(spec, stage, draw, extreme=False))
    for round_, stage in enumerate(spec.stages()):
        if stage is not Stage.MEANS:  # whose task has no numbers
            other = task_of(spec, stage, draw, extreme=False)
            assert refusal(vault, ledger, name, round_, other) is RequestConflict


def test_a_task_of_another_stage_round_or_method_is_refused_and_costs_nothing(
    admitted: tuple[Vault, Ledger, str, MomentsSpec],
) -> None:
    vault, ledger, name, spec = admitted
    draw, stages = np.random.default_rng(5), spec.stages()
    for round_, stage in enumerate(stages):
        for other in set(Stage) - {stage, Stage.LABEL}:
            task = task_of(spec, other, draw, extreme=False)
            assert refusal(vault, ledger, name, round_, task) is BadMessage
        assert (
            refusal(vault, ledger, name, round_, task_to_bytes(FrankWolfeTask(None))) is BadMessage
        )
    for round_ in (len(stages), 2**31, 2**32 - 1):
        for stage in stages:
            task = task_of(spec, stage, draw, extreme=False)
            assert refusal(vault, ledger, name, round_, task) is BadMessage


_ADMITTED: list[tuple[Vault, Ledger, str, MomentsSpec, int]] = []


@settings(max_examples=150)
@given(st.integers(0, 9), st.binary(max_size=60), st.integers(0, 10**6), st.integers(0, 2**16))
def test_fuzzed_tasks_raise_nothing_but_refusals(
    round_: int, noise: bytes, place: int, seed: int
) -> None:
    if not _ADMITTED:
        job, spec, body, name = spec_of(**SCREENED)
        ledger = ledger_of(2 * job.max_units(ME))
        vault = vault_of(ledger)
        assert vault.consider(body).accepted
        _ADMITTED.append((vault, ledger, name, spec, job.max_units(ME)))
    vault, ledger, name, spec, most = _ADMITTED[0]
    stages = spec.stages()
    body = task_of(spec, stages[round_ % len(stages)], np.random.default_rng(seed), extreme=False)
    at = place % (len(body) + 1)
    for task in (noise, body[:at] + noise, body[:at] + noise + body[at + len(noise) :]):
        try:
            vault.answer(name, round_, task)
        except ColonnadeError:
            continue
    assert ledger.budget().spent <= most
