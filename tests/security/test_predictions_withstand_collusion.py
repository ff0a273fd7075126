"""The coordinator and the receiver together: what they try to get a party's own part of a score.

The receiver signs whatever helps with its own ledger's key, and the coordinator relays what it
likes. The laboratory and the insurer are honest.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.federation import NAMES, sites
from support.predicting import Tabletop, table_of

from colonnade.client.predict_builder import model_from_releases
from colonnade.core.arrays import IntArray
from colonnade.core.errors import ColonnadeError, RequestConflict
from colonnade.core.fixedpoint import GRID
from colonnade.data.integer_scores import IntegerScores, add_products
from colonnade.data.model import LinearModel, ModelFeature, ModelLabel
from colonnade.masking.errors import BadPart
from colonnade.masking.masks import words_from_bytes
from colonnade.masking.schedule import Announcement, RunSecrets, agree, announce
from colonnade.masking.sealing import open_part
from colonnade.methods.job import Job, job_id
from colonnade.methods.prediction.claims import learned
from colonnade.methods.prediction.codec import announcement_to_bytes
from colonnade.methods.prediction.spec import PART, PredictionSpec
from colonnade.methods.problem import Solution
from colonnade.server.methods.registry import algorithm_of
from colonnade.v1 import prediction_pb2 as pb
from colonnade.wire.jobspec import job_to_bytes

RECEIVER, HONEST = NAMES[0], NAMES[1:3]
_free = itertools.count()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Tabletop:
    return table_of(tmp_path_factory.mktemp("study"))


@pytest.fixture
def rows(table: Tabletop) -> list[int]:
    """Return four rows that no other test asks for."""
    first = 4 * next(_free)
    table.grant(table.study.grant())
    return [*range(first, first + 4)]


def spec_of(job: Job) -> PredictionSpec:
    assert isinstance(job.method, PredictionSpec)
    return job.method


def model_of(table: Tabletop) -> LinearModel:
    return model_from_releases(job_to_bytes(table.study.job), table.study.releases, Solution())


def exact_part(table: Tabletop, party: str, rows: Sequence[int]) -> IntArray:
    """Return a party's part of some rows, as nobody else may know it."""
    model, columns = model_of(table), sites(names=NAMES)[NAMES.index(party)].features
    values = {column.name: column.values for column in columns}
    part = np.zeros(len(rows), np.int64)
    for feature, number in zip(model.features, IntegerScores.of(model).coef, strict=True):
        if feature.party == party:
            add_products(
                part, feature.quantised(values[feature.name][list(rows)])[None, :], [number]
            )
    return part


def begun(table: Tabletop, job: Job) -> tuple[str, Any, Any]:
    """Return a job's name, its steps, and the state after the keys."""
    name = job_id(job_to_bytes(job))
    algorithm = algorithm_of(job, name)
    assert set(table.codes(job).values()) == {""}
    state = algorithm.start()
    answers = {
        party: {each.key.kind: each.body for each in table.vaults[party].answer(name, 0, task)}
        for party, task in algorithm.tasks(state).items()
    }
    return name, algorithm, algorithm.absorb(state, answers)


def answered(table: Tabletop, name: str, party: str, round_: int, keys: Sequence[bytes]) -> bytes:
    """Return the part of a party that is handed these announcements."""
    task = pb.PredictionTask(round=round_, keys=keys).SerializeToString(deterministic=True)
    (part,) = table.vaults[party].answer(name, round_, task)
    assert part.key.kind == PART
    return part.body


def signed_anew(table: Tabletop, job: Job, keys: Sequence[bytes]) -> tuple[RunSecrets, list[bytes]]:
    """Return other announcements: the receiver draws a second key and signs it."""
    run = spec_of(job).run(job_id(job_to_bytes(job)), IntegerScores.of(model_of(table)).scale)
    secrets, first = RunSecrets.draw(), Announcement.from_bytes(keys[0])
    signer = table.study.ledgers[RECEIVER]
    other = announce(run, 0, secrets, table=first.table, signer=signer)
    return secrets, [announcement_to_bytes(other), *keys[1:]]


def test_parts_masked_under_two_views_of_the_keys_add_up_to_nothing(
    table: Tabletop, rows: list[int]
) -> None:
    job = table.study.request(rows)
    name, _, state = begun(table, job)
    kept = table.study.predictions(RECEIVER).secrets(name)
    assert kept is not None
    secrets, other = signed_anew(table, job, state.keys)
    run = spec_of(job).run(name, IntegerScores.of(model_of(table)).scale)
    sums = np.zeros(len(rows), np.uint64)
    views = ((HONEST[0], kept[0], list(state.keys)), (HONEST[1], secrets, other))
    for party, own, keys in views:
        heard = [Announcement.from_bytes(each) for each in keys]
        schedule = agree(run, 0, own, heard, receiver=0, round_=0)
        sealed = answered(table, name, party, 1, keys)
        # The receiver opens it and takes off the mask that it shares with the party.
        words = words_from_bytes(open_part(schedule, NAMES.index(party), sealed))
        sums += words
        assert not (words.view(np.int64) == exact_part(table, party, rows)).any()
    exact = sum(exact_part(table, party, rows) for party in HONEST)
    assert not (sums.view(np.int64) == exact).any()
    # A second view of a round that was answered is refused: one part of a chunk, ever.
    with pytest.raises(RequestConflict):
        answered(table, name, HONEST[0], 1, other)


def test_a_chunk_is_masked_once_also_after_its_part_was_deleted(
    table: Tabletop, rows: list[int]
) -> None:
    asked = table.study.request(rows)
    job = replace(asked, method=replace(spec_of(asked), chunk=1))
    name, _, state = begun(table, job)
    _, other = signed_anew(table, job, state.keys)
    parts = [answered(table, name, HONEST[0], round_, state.keys) for round_ in (1, 2, 3)]
    assert len(set(parts)) == 3
    for keys in (other, list(state.keys)):  # round 1 is purged by now: neither anew nor the same
        with pytest.raises(ColonnadeError):
            answered(table, name, HONEST[0], 1, keys)
    with pytest.raises(RequestConflict):
        answered(table, name, HONEST[0], 3, other)


def test_a_run_that_ended_answers_nothing_more(table: Tabletop, rows: list[int]) -> None:
    job = table.study.request(rows)
    name, _, state = begun(table, job)
    _, other = signed_anew(table, job, state.keys)
    answered(table, name, HONEST[0], 1, state.keys)
    vault = table.vaults[HONEST[0]]
    for finished in (False, True):
        vault.close_job(name, finished=finished)
        vault.consider(job_to_bytes(job))
        for keys in (other, list(state.keys)):
            with pytest.raises((ColonnadeError, KeyError)):
                answered(table, name, HONEST[0], 1, keys)


def test_a_part_of_one_request_serves_no_other(table: Tabletop, rows: list[int]) -> None:
    # The same rows for the same receiver, one at a time and together: no part fits elsewhere.
    name, algorithm, state = begun(table, table.study.request(rows))
    one, steps, first = begun(table, table.study.request(rows[:1]))
    there = [answered(table, name, party, 1, state.keys) for party in HONEST]
    here = [answered(table, one, party, 1, first.keys) for party in HONEST]
    after = steps.absorb(first, dict(zip(HONEST, ({PART: each} for each in here), strict=True)))
    cut = tuple(each[: len(here[0])] for each in there)
    for parts in ((there[0], here[1]), (cut[0], here[1]), tuple(reversed(here))):
        task = steps.tasks(replace(after, parts=parts))[RECEIVER]
        with pytest.raises(BadPart):
            table.vaults[RECEIVER].answer(one, 2, task)
    del algorithm


def test_a_part_that_was_sealed_to_one_receiver_opens_at_no_other(
    table: Tabletop, rows: list[int]
) -> None:
    table.grant(table.study.grant() + table.study.grant(receiver=f'"{HONEST[0]}"'))
    name, _, state = begun(table, table.study.request(rows))
    other, steps, begun_there = begun(table, table.study.request(rows, to=HONEST[0]))
    sealed = answered(table, name, HONEST[1], 1, state.keys)
    sent = {
        party: {PART: answered(table, other, party, 1, begun_there.keys)}
        for party in (RECEIVER, HONEST[1])
    }
    after = steps.absorb(begun_there, sent)
    task = steps.tasks(replace(after, parts=(after.parts[0], sealed)))[HONEST[0]]
    with pytest.raises(BadPart):
        table.vaults[HONEST[0]].answer(other, 2, task)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_nonce_that_a_relay_drops_or_changes_is_noticed(
    table: Tabletop, rows: list[int], place: int
) -> None:
    name, _, state = begun(table, table.study.request(rows))
    for made in (bytes(32), b"\1" * 32):
        found = replace(Announcement.from_bytes(state.keys[place]), nonce=made)
        keys = list(state.keys)
        keys[place] = announcement_to_bytes(found)
        for party in HONEST:
            with pytest.raises(ColonnadeError) as refused:
                answered(table, name, party, 1, keys)
            assert refused.value.code == "bad_announcement"


def test_one_exact_score_tells_columns_of_few_values_and_whoever_grants_it_is_told(
    table: Tabletop,
) -> None:
    # No protocol stops this: the sum itself determines its terms. Fourteen columns of yes and no
    # at two parties have 2**14 sums, all different, so a score names the row of both parties.
    draw = np.random.default_rng(3)
    features = tuple(
        ModelFeature(party, f"x{place}", 0.0, 1.0, 0.5, coef)
        for party, coefs in zip(HONEST, draw.normal(0.0, 0.2, (2, 7)), strict=True)
        for place, coef in enumerate(coefs)
    )
    model = LinearModel(
        "ab" * 32, "logistic", ModelLabel("y", 0.0, 1.0), 0.1, features, private=True
    )
    rows = np.array(list(itertools.product((0.0, 1.0), repeat=14))).T
    names = [feature.full_name for feature in features]
    scores = model.decision_function(dict(zip(names, rows, strict=True)))
    assert np.unique(scores).size == 2**14
    told = dict(learned(RECEIVER, 3, ()))
    assert "few possible values" in told[RECEIVER]
    assert GRID == 2**14  # and a column that fills its grid has as many values as all of these
    del table
