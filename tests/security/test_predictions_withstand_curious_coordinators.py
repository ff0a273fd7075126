"""Every rule of predictions closes an attack; each test here is one that would work without it.

One table of three parties serves all tests: rules are about rows and grants, so each test has rows
and a purpose of its own.
"""

import datetime as dt
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.federation import NAMES, sites
from support.predicting import Tabletop, table_of

from colonnade.client.predict_builder import model_from_releases
from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.errors import ColonnadeError, RequestConflict
from colonnade.data.integer_scores import IntegerScores, add_products, model_digest
from colonnade.data.model import LinearModel
from colonnade.ledger.receipts import public_bytes
from colonnade.masking.errors import BadAnnouncement, BadPart
from colonnade.masking.masks import Words, total, words_from_bytes
from colonnade.masking.sealing import SEAL_BYTES
from colonnade.methods.job import Job, job_id
from colonnade.methods.prediction.claims import exposure
from colonnade.methods.prediction.refusals import ScoreTooLarge
from colonnade.methods.prediction.spec import PredictionSpec
from colonnade.methods.problem import Solution
from colonnade.party.data.columns import version_of
from colonnade.party.data.dataset import Dataset
from colonnade.server.methods.registry import algorithm_of
from colonnade.v1 import jobs_pb2
from colonnade.v1 import prediction_pb2 as pb
from colonnade.wire.codec import release_from_proto
from colonnade.wire.jobspec import job_to_bytes

RIDGE = Solution("ridge", {"strength": 0.1})
_free = itertools.count()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Tabletop:
    return table_of(tmp_path_factory.mktemp("study"))


@pytest.fixture
def rows(table: Tabletop) -> list[int]:
    """Return four rows that no other test asks for, and grant the model for no purpose but this."""
    first = 4 * next(_free)
    table.grant(table.study.grant())
    return [*range(first, first + 4)]


def spec_of(job: Job) -> PredictionSpec:
    assert isinstance(job.method, PredictionSpec)
    return job.method


def changed(job: Job, **changes: Any) -> Job:
    """Return a job with another specification, as a coordinator may write it."""
    return replace(job, method=replace(spec_of(job), **changes))


def granting(table: Tabletop, *jobs: Job, **changes: Any) -> str:
    """Return a grant that names the models of some requests."""
    named = ", ".join(f'"{spec_of(job).model.hex()}"' for job in jobs)
    return table.study.grant(job=None, model=f"[{named}]", **changes)


def joined() -> dict[str, FloatArray]:
    return {
        f"{site.party}.{column.name}": column.values
        for site in sites(names=NAMES)
        for column in site.features
    }


# -- coefficients -------------------------------------------------------------------------------


def test_coefficients_that_the_releases_do_not_lead_to_are_refused(
    table: Tabletop, rows: list[int]
) -> None:
    job = table.study.request(rows)
    assert table.refused(changed(job, model=bytes(32))) == "model_mismatch"
    ridge = table.study.request(rows, solution=RIDGE)
    assert spec_of(ridge).model != spec_of(job).model
    assert table.refused(changed(job, model=spec_of(ridge).model)) == "model_mismatch"
    table.grant(granting(table, job))
    assert table.refused(changed(job, solution=RIDGE)) == "model_mismatch"


def evidence(table: Tabletop) -> list[jobs_pb2.PartyReleases]:
    return [jobs_pb2.PartyReleases.FromString(e.SerializeToString()) for e in table.study.releases]


def with_evidence(job: Job, shown: list[jobs_pb2.PartyReleases]) -> Job:
    found = tuple((e.party, tuple(r.SerializeToString() for r in e.releases)) for e in shown)
    return changed(job, evidence=found)


@pytest.mark.parametrize("kind", ["body", "own body", "missing", "twice", "swapped", "other job"])
def test_releases_that_their_parties_did_not_sign_are_no_evidence(
    table: Tabletop, rows: list[int], kind: str
) -> None:
    shown = evidence(table)
    first = shown[1 if kind == "own body" else 2].releases[-1]
    if kind in ("body", "own body"):
        first.body = bytes([first.body[0] ^ 1]) + first.body[1:]
    elif kind == "missing":
        del shown[2].releases[-1]
    elif kind == "twice":
        shown[2].releases.add().CopyFrom(first)
    elif kind == "swapped":
        shown[2].releases[-1].body = shown[1].releases[-1].body
    else:
        first.key.job_id = "ab" * 32
    assert table.refused(with_evidence(table.study.request(rows), shown)) == "bad_evidence"


def resigned(table: Tabletop, party: str) -> list[jobs_pb2.PartyReleases]:
    """Return evidence in which a colluding party signs another last release than it made."""
    shown = evidence(table)
    for each in shown:
        if each.party == party:
            release = each.releases[-1]
            release.body = bytes(len(release.body) - 1) + b"\1"
            receipt = release_from_proto(release).receipt
            release.receipt.signature = table.study.ledgers[party].sign(receipt.statement())
    return shown


def test_a_colluding_party_that_signs_other_releases_makes_one_more_model_and_no_more(
    table: Tabletop, rows: list[int]
) -> None:
    honest = table.study.request(rows)
    other = table.study.request(rows, releases=resigned(table, "insurer"))
    assert spec_of(other).model != spec_of(honest).model
    assert table.codes(other)["insurer"] == "bad_evidence"  # it is not in its own ledger
    table.run(honest)
    codes = table.codes(table.study.request(rows, releases=resigned(table, "insurer")))
    assert codes["hospital"] == codes["laboratory"] == "rows_answered"


def test_a_party_answers_only_for_jobs_that_it_took_part_in(
    table: Tabletop, rows: list[int], tmp_path: Path
) -> None:
    stranger = table_of(tmp_path, NAMES[:3])
    job = stranger.study.request(rows)
    # The same parties' names, other ledgers: what is shown as a party's own is not in its ledger.
    parts = tuple(
        replace(part, ledger_key=table.study.key(part.party)) for part in spec_of(job).parts
    )
    table.grant(table.study.grant(job=f'"{stranger.study.job_id}"'))
    assert table.refused(changed(job, parts=parts)) == "bad_evidence"


# -- grants --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"receiver": '"laboratory"'},
        {"purpose": '"another"'},
        {"max_rows": "3"},
        {"until": "2025-12-31"},
        {"job": f'"{"ab" * 32}"'},
        {"job": None, "model": f'"{"ab" * 32}"'},
        {"coordinator": '"spiffe://elsewhere/coordinator/hub"'},
        {"peers": "{}"},
    ],
    ids=lambda change: next(iter(reversed(change))),
)
def test_what_no_grant_names_is_refused(
    table: Tabletop, rows: list[int], change: dict[str, str]
) -> None:
    job = table.study.request(rows)
    table.grant(table.study.grant(**change))
    assert table.refused(job) == "policy_refused"
    table.grant("")
    assert table.refused(job) == "policy_refused"


def test_a_grant_of_a_job_is_of_its_own_model_and_of_no_other_penalty(
    table: Tabletop, rows: list[int]
) -> None:
    own, ridge = table.study.request(rows), table.study.request(rows, solution=RIDGE)
    assert table.refused(ridge) == "policy_refused"
    assert set(table.codes(own).values()) == {""}
    # By its digest it is granted, and then the job's own is not.
    table.grant(granting(table, ridge))
    assert table.refused(own) == "policy_refused"
    assert set(table.codes(ridge).values()) == {""}


def test_a_grant_that_is_edited_or_written_anew_counts_on(table: Tabletop, rows: list[int]) -> None:
    own, ridge = table.study.request(rows), table.study.request(rows, solution=RIDGE)
    table.run(own)
    for grants in (granting(table, own, ridge), granting(table, ridge)):
        table.grant(grants)
        assert table.refused(ridge) == "rows_answered"
    table.grant(granting(table, ridge, models_per_row="2"))
    assert set(table.codes(ridge).values()) == {""}


def test_a_row_is_not_scored_again_after_a_party_ingested_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, rows = table_of(tmp_path), [0, 1, 2, 3]
    # The difference of the two scores of a row would be the change of the laboratory's part.
    place = "colonnade.party.prediction.predictor.order_of"
    monkeypatch.setattr(place, lambda dataset: "one order")
    grants = table.study.grant(purpose='"versions"') + table.study.grant()
    table.grant(grants)
    table.run(table.study.request(rows, purpose="versions"))

    def version(dataset: Dataset) -> str:
        return "cd" * 16 if "laboratory" in str(dataset.folder) else version_of(dataset.coarse)

    monkeypatch.setattr(Dataset, "version", property(version))
    refused = {"hospital": "", "laboratory": "rows_changed", "insurer": ""}
    for purpose in ("versions", "triage"):  # whatever the grant
        for asked in (rows, rows[2:]):
            assert table.codes(table.study.request(asked, purpose=purpose)) == refused
    near = table.study.request(rows, solution=RIDGE)
    table.grant(granting(table, near, models_per_row="2"))
    assert table.codes(near) == refused
    table.grant(grants)
    others = table.study.request([row + 200 for row in rows], purpose="versions")
    assert set(table.codes(others).values()) == {""}
    table.grant(table.study.grant(rescore_after_ingest="true"))
    assert set(table.codes(table.study.request(rows)).values()) == {""}


def test_a_receivers_own_change_is_its_own_business_and_an_extension_keeps_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, rows = table_of(tmp_path), [0, 1, 2, 3]
    where = "colonnade.party.prediction.predictor."
    monkeypatch.setattr(where + "order_of", lambda dataset: "an order")
    table.run(table.study.request(rows))
    monkeypatch.setattr(Dataset, "version", property(lambda dataset: "cd" * 16))
    codes = table.codes(table.study.request(rows))
    assert codes == {"hospital": "", "laboratory": "rows_changed", "insurer": "rows_changed"}
    # In an order that extends the first, rows are the same people; in any other, anybody's.
    new = [row + 250 for row in rows]
    monkeypatch.setattr(where + "order_of", lambda dataset: "a longer order")
    assert table.codes(table.study.request(new))["insurer"] == "rows_changed"
    monkeypatch.setattr(where + "extended_orders", lambda data, name: frozenset(["an order"]))
    assert set(table.codes(table.study.request(new)).values()) == {""}
    assert table.codes(table.study.request(rows))["insurer"] == "rows_changed"


def test_a_coordinator_cannot_put_a_key_of_its_own_in_a_partys_place(
    table: Tabletop, rows: list[int]
) -> None:
    own = public_bytes(Ed25519PrivateKey.generate())
    job = table.study.request(rows)
    parts = [replace(p, ledger_key=own) if p.party == "insurer" else p for p in spec_of(job).parts]
    codes = table.codes(changed(job, parts=tuple(parts)))
    assert codes["hospital"] == codes["laboratory"] == "policy_refused"


def test_rows_are_counted_over_all_requests_of_a_grant(table: Tabletop, rows: list[int]) -> None:
    table.grant(table.study.grant(purpose='"counted"', max_rows="5"))
    table.run(table.study.request(rows, purpose="counted"))
    again = table.study.request(rows[:2], purpose="counted")
    assert table.refused(again) == "rows_answered"
    table.run(table.study.request(rows[:1], purpose="counted"))


# -- one model a row -----------------------------------------------------------------------------


def test_a_row_has_one_model_a_grant(table: Tabletop, rows: list[int]) -> None:
    third = Solution("ridge", {"strength": 0.2})
    jobs = [table.study.request(rows, solution=each) for each in (Solution(), RIDGE, third)]
    table.grant(granting(table, *jobs))
    table.run(jobs[0])
    assert table.refused(table.study.request(rows[3:], solution=RIDGE)) == "rows_answered"
    table.grant(granting(table, *jobs, models_per_row="2"))
    table.run(table.study.request(rows[2:], solution=RIDGE))
    assert table.refused(table.study.request(rows[2:], solution=third)) == "rows_answered"
    table.run(table.study.request(rows[:2], solution=third))  # their second


def test_as_many_models_as_columns_would_solve_for_a_row(table: Tabletop) -> None:
    # The attack that the rule stops: scores of one row by ten models, which its owner's policy
    # forbids, give nine columns and a constant. Here they are computed from the joined table.
    training = job_to_bytes(table.study.job)
    models = [
        model_from_releases(training, table.study.releases, Solution("ridge", {"strength": s}))
        for s in np.geomspace(1e-3, 10.0, 12)
    ]
    coef = np.array([[f.coef_scaled for f in each.features] for each in models])
    columns = joined()
    row = {name: values[:1] for name, values in columns.items()}
    scores = np.array([each.decision_function(row)[0] - each.intercept_scaled for each in models])
    solved, _, rank, _ = np.linalg.lstsq(coef, scores, rcond=1e-12)
    truth = [row[f.full_name][0] / 3.0 for f in models[0].features]
    assert rank == 9
    np.testing.assert_allclose(solved, np.clip(truth, -1, 1), atol=1e-2)


def test_rows_of_another_order_may_be_the_same_people(
    table: Tabletop, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = [row + 100 for row in rows]
    other = table.study.request(elsewhere, purpose="orders", solution=RIDGE)
    table.grant(granting(table, table.study.request(rows), other, purpose='"orders"'))
    table.run(table.study.request(rows, purpose="orders"))
    monkeypatch.setattr(
        "colonnade.party.prediction.predictor.order_of", lambda dataset: "another order"
    )
    assert table.refused(other) == "rows_answered"
    assert set(table.codes(table.study.request(elsewhere, purpose="orders")).values()) == {""}


# -- party sets ----------------------------------------------------------------------------------


def test_a_missing_party_is_refused_unless_declared_and_granted(
    table: Tabletop, rows: list[int]
) -> None:
    whole = table.study.request(rows)
    method = replace(spec_of(whole), parts=spec_of(whole).parts[:2])
    two = replace(whole, members=whole.members[:2], method=method)
    assert table.refused(two) == "party_missing"
    assert table.refused(table.study.request(rows, middle=("insurer",))) == "party_missing"


def test_a_later_complete_answer_would_subtract_to_the_missing_partys_score(
    table: Tabletop, rows: list[int]
) -> None:
    table.grant(table.study.grant(middle='["insurer"]'))
    name, _ = table.run(table.study.request(rows, middle=("insurer",)))
    model = model_from_releases(job_to_bytes(table.study.job), table.study.releases, Solution())
    _, scores, _ = table.scores(name)
    columns = joined()
    for column in [each for each in columns if each.startswith("insurer")]:
        columns[column] = np.zeros_like(columns[column])  # the middle of -3 and 3
    assert scores.tobytes() == model.decision_function(columns)[rows].tobytes()
    for asked in (rows, rows[:1]):
        codes = table.codes(table.study.request(asked))
        assert codes["hospital"] == codes["laboratory"] == "party_set_final"


def test_a_complete_answer_is_final_too(table: Tabletop, rows: list[int]) -> None:
    table.run(table.study.request(rows))
    table.grant(table.study.grant(middle='["insurer"]', purpose='"another grant"'))
    job = table.study.request(rows, middle=("insurer",), purpose="another grant")
    assert table.refused(job) == "party_set_final"


# -- messages ------------------------------------------------------------------------------------


def begun(table: Tabletop, job: Job) -> tuple[str, Any, Any]:
    """Return a job's name, its steps, and the state after the keys."""
    spec = job_to_bytes(job)
    name = job_id(spec)
    algorithm = algorithm_of(job, name)
    assert set(table.codes(job).values()) == {""}
    state = algorithm.start()
    answers = {
        party: {each.key.kind: each.body for each in table.vaults[party].answer(name, 0, task)}
        for party, task in algorithm.tasks(state).items()
    }
    return name, algorithm, algorithm.absorb(state, answers)


def test_a_repeat_returns_stored_bytes_also_after_a_restart(
    table: Tabletop, rows: list[int]
) -> None:
    job = table.study.request(rows)
    name, algorithm, state = begun(table, job)
    task = algorithm.tasks(state)["laboratory"]
    vault = table.vaults["laboratory"]
    (first,) = vault.answer(name, 1, task)
    (again,) = vault.answer(name, 1, task)
    table.restart("laboratory")
    vault = table.vaults["laboratory"]
    assert vault.consider(job_to_bytes(job)).accepted
    (replayed,) = vault.answer(name, 1, task)
    assert first.body == again.body == replayed.body
    assert len(first.body) == 8 * len(rows) + SEAL_BYTES
    (key,) = vault.answer(name, 0, algorithm.tasks(algorithm.start())["laboratory"])
    assert key.body == state.keys[1]


def test_another_task_under_the_same_key_is_refused(table: Tabletop, rows: list[int]) -> None:
    name, algorithm, state = begun(table, table.study.request(rows))
    table.vaults["laboratory"].answer(name, 1, algorithm.tasks(state)["laboratory"])
    other = pb.PredictionTask.FromString(algorithm.tasks(state)["laboratory"])
    other.parts.append(b"anything")
    with pytest.raises(RequestConflict):
        table.vaults["laboratory"].answer(name, 1, other.SerializeToString())


def test_keys_and_parts_that_a_relay_altered_are_refused(table: Tabletop, rows: list[int]) -> None:
    name, algorithm, state = begun(table, table.study.request(rows))
    bad = replace(state, keys=(*state.keys[:2], bytes(160)))
    with pytest.raises(BadAnnouncement):
        table.vaults["laboratory"].answer(name, 1, algorithm.tasks(bad)["laboratory"])
    sent = {
        party: {each.key.kind: each.body for each in table.vaults[party].answer(name, 1, task)}
        for party, task in algorithm.tasks(state).items()
    }
    state = algorithm.absorb(state, sent)
    for parts in (state.parts[::-1], (bytes(len(state.parts[0])), state.parts[1])):
        task = algorithm.tasks(replace(state, parts=parts))["hospital"]
        with pytest.raises(BadPart):
            table.vaults["hospital"].answer(name, 2, task)


def test_the_coordinator_sees_no_score_and_the_receiver_no_part(
    table: Tabletop, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Words] = []

    def spy(parts: Sequence[Words]) -> IntArray:
        opened.extend(parts)
        return total(parts)

    monkeypatch.setattr("colonnade.party.prediction.answers.total", spy)
    name, sent = table.run(table.study.request(rows))
    model = model_from_releases(job_to_bytes(table.study.job), table.study.releases, Solution())
    integers, columns = IntegerScores.of(model), joined()
    assert table.scores(name)[1].tobytes() == model.decision_function(columns)[rows].tobytes()
    exact = {party: np.zeros(len(rows), np.int64) for party in table.study.names}
    for feature, number in zip(model.features, integers.coef, strict=True):
        held = feature.quantised(columns[feature.full_name][rows])[None, :]
        add_products(exact[feature.party], held, [number])
    assert (
        total([each.view(np.uint64) for each in exact.values()]).tolist()
        == sum(exact.values(), np.zeros(len(rows), np.int64)).tolist()
    )
    # What the receiver opened, and what the coordinator relayed, hold nobody's part in any row. A
    # uniform word equals one by chance with probability 2**-64.
    assert len(opened) == 3
    relayed = [
        words_from_bytes(each.body[: 8 * len(rows)])
        for releases in sent.values()
        for each in releases
        if each.key.kind == "part"
    ]
    for seen in (*opened, *relayed):
        assert not any((seen.view(np.int64) == part).any() for part in exact.values())


def test_a_sum_that_could_wrap_is_refused(
    table: Tabletop, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def huge(model: LinearModel) -> IntegerScores:
        return IntegerScores(30, 0, tuple(2**46 for _ in model.features))

    monkeypatch.setattr("colonnade.party.prediction.predictor.IntegerScores.of", huge)
    assert table.refused(table.study.request(rows)) == ScoreTooLarge.code


def test_a_table_that_changed_since_the_keys_is_refused(
    table: Tabletop, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = table.study.request(rows)
    name, algorithm, state = begun(table, job)
    monkeypatch.setattr(
        "colonnade.party.prediction.predictor.table_digest", lambda version, order: bytes(32)
    )
    table.restart("laboratory")
    vault = table.vaults["laboratory"]
    assert vault.consider(job_to_bytes(job)).accepted
    with pytest.raises(ColonnadeError) as refused:
        vault.answer(name, 1, algorithm.tasks(state)["laboratory"])
    assert refused.value.code == "dataset_changed"


def test_a_party_whose_secrets_are_gone_draws_no_others(table: Tabletop, rows: list[int]) -> None:
    job = table.study.request(rows)
    name, algorithm, state = begun(table, job)
    folder = table.study.predictions("laboratory")
    assert folder.secrets(name) is not None
    folder.erase(name, finished=True)
    table.restart("laboratory")
    vault = table.vaults["laboratory"]
    assert vault.consider(job_to_bytes(job)).accepted
    # The key that was announced is stored: new secrets beside it would mask what nobody unmasks.
    for round_, at in ((0, algorithm.start()), (1, state)):
        with pytest.raises(ColonnadeError) as refused:
            vault.answer(name, round_, algorithm.tasks(at)["laboratory"])
        assert refused.value.code == "dataset_changed"
    assert folder.secrets(name) is None


def test_rows_are_scored_only_in_the_order_that_the_request_names(
    table: Tabletop, rows: list[int]
) -> None:
    job = table.study.request(rows)
    assert set(table.codes(job).values()) == {""}
    elsewhere = tuple(replace(each, alignment="another order") for each in job.members)
    assert table.refused(replace(job, members=elsewhere)) == "bad_message"


def test_of_two_requests_that_were_both_approved_the_first_is_recorded(
    table: Tabletop, rows: list[int]
) -> None:
    first, second = table.study.request(rows), table.study.request(rows, solution=RIDGE)
    table.grant(granting(table, first, second))
    assert {*table.codes(first).values(), *table.codes(second).values()} == {""}
    table.run(first)
    name = job_id(job_to_bytes(second))
    algorithm = algorithm_of(second, name)
    task = algorithm.tasks(algorithm.start())["laboratory"]
    with pytest.raises(ColonnadeError) as refused:
        table.vaults["laboratory"].answer(name, 0, task)
    assert refused.value.code == "rows_answered"


def test_a_grant_ends_on_its_day(table: Tabletop, rows: list[int]) -> None:
    table.grant(table.study.grant(until="2026-06-30"))
    job = table.study.request(rows)
    table.restart("laboratory", dt.date(2026, 7, 1))
    assert table.codes(job) == {"hospital": "", "laboratory": "policy_refused", "insurer": ""}


def test_with_two_parties_the_receiver_learns_the_others_part_and_is_told_so(
    tmp_path: Path,
) -> None:
    pair = table_of(tmp_path, NAMES[:2])
    name, _ = pair.run(pair.study.request([0, 1, 2]))
    model = model_from_releases(job_to_bytes(pair.study.job), pair.study.releases, Solution())
    own = joined()
    for column in [each for each in own if each.startswith("laboratory")]:
        own[column] = np.zeros_like(own[column])
    _, scores, _ = pair.scores(name)
    assert np.abs(scores - model.decision_function(own)[:3]).max() > 0.0  # the laboratory's part
    assert "partial score of every row, exactly" in exposure(2)
    assert "unless two parties besides the receiver are honest" in exposure(3)
    assert model_digest(model) == spec_of(pair.study.request([0])).model
