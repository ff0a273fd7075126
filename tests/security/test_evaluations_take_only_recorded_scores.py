"""An evaluation pairs labels with recorded scores of its rows by its model, and with no others."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.federation import N_ROWS
from support.predicting import Tabletop, table_of

from colonnade.client.evaluate_builder import EvaluateOptions, author_evaluation
from colonnade.client.predict_builder import model_from_releases
from colonnade.methods.evaluation.spec import EvaluationSpec
from colonnade.methods.holdout import rows_held_out
from colonnade.methods.job import Job, job_id
from colonnade.methods.problem import Solution
from colonnade.v1 import evaluation_pb2 as pb
from colonnade.wire.jobspec import job_to_bytes

HOLDOUT = 300
OWNER = "hospital"


@pytest.fixture
def scored(tmp_path: Path) -> tuple[Tabletop, str]:
    """Return a table whose first party was sent scores of the people kept out, and their run."""
    table = table_of(tmp_path)
    table.grant(table.study.grant() + allowing(table))
    run, _ = table.run(table.study.request(rows_held_out(N_ROWS, HOLDOUT).tolist()))
    return table, run


def allowing(table: Tabletop) -> str:
    """Return what lets the coordinator evaluate."""
    usual = table.study.policy(OWNER).read_text().split("[[predict]]")[0]
    start = usual.index("[[allow]]")
    lines = [each for each in usual[start:].splitlines() if not each.startswith("kinds")]
    return "\n".join([*lines, 'kinds = ["evaluation"]', ""])


def evaluation(table: Tabletop, run: str, solution: Solution | None = None) -> Job:
    """Return an evaluation of a run's scores, said to be of a model of the study's job."""
    study = table.study
    model = model_from_releases(job_to_bytes(study.job), study.releases, solution or Solution())
    member = study.job.members[0]
    offers = [replace(each, dataset=member.dataset) for each in study.offers()]
    trained = replace(study.job, holdout=HOLDOUT)
    return author_evaluation(study.job_id, trained, run, model, EvaluateOptions(1.0), offers=offers)


def code(table: Tabletop, job: Job) -> str:
    return str(table.vaults[OWNER].consider(job_to_bytes(job)).code)


def test_scores_of_the_models_run_are_evaluated(scored: tuple[Tabletop, str]) -> None:
    table, run = scored
    assert code(table, evaluation(table, run)) == ""


def test_scores_by_another_model_are_not(scored: tuple[Tabletop, str]) -> None:
    table, run = scored
    other = Solution("ridge", {"strength": 0.1})
    assert code(table, evaluation(table, run, other)) == "policy_refused"


def test_scores_of_another_order_of_rows_are_not(
    scored: tuple[Tabletop, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # One person's score and another's label would meet in a row, and one person count in two.
    table, run = scored
    monkeypatch.setattr(
        "colonnade.party.vault.column_jobs.order_of", lambda dataset: "another order"
    )
    assert code(table, evaluation(table, run)) == "policy_refused"


def test_a_file_that_no_record_vouches_for_is_not(scored: tuple[Tabletop, str]) -> None:
    table, run = scored
    folder, planted = table.study.predictions(OWNER), "ab" * 32
    shutil.copy(folder.scores_path(run), folder.scores_path(planted))
    assert code(table, evaluation(table, planted)) == "policy_refused"


def test_noise_is_averaged_away_only_at_its_full_price(scored: tuple[Tabletop, str]) -> None:
    # The same scores in other buckets, or under another name, are another release with its own
    # charge; the same request has the same bytes, and no second draw of noise.
    table, run = scored
    ledger, vault = table.study.ledgers[OWNER], table.vaults[OWNER]
    before, paid, bodies = ledger.state.total, 0, []
    for buckets in (20, 20, 19):
        job = evaluation(table, run)
        assert isinstance(job.method, EvaluationSpec)
        job = replace(job, method=replace(job.method, buckets=buckets))
        name, task = job_id(job_to_bytes(job)), pb.EvaluationTask().SerializeToString()
        assert code(table, job) == ""
        first, again = (next(iter(vault.answer(name, 1, task))).body for _ in range(2))
        assert first == again
        paid += job.max_units(OWNER)
        bodies.append(first)
        assert ledger.state.total - before == paid
    assert bodies[0] != bodies[1]


def test_scores_of_chosen_people_alone_are_priced_like_all(scored: tuple[Tabletop, str]) -> None:
    # A request of one row makes the sums those of one person: the noise is what hides them.
    table, run = scored
    one = rows_held_out(N_ROWS, HOLDOUT).tolist()[:1]
    alone, _ = table.run(table.study.request(one))
    few, all_ = evaluation(table, alone), evaluation(table, run)
    assert isinstance(few.method, EvaluationSpec)
    assert isinstance(all_.method, EvaluationSpec)
    assert few.method.mechanism == all_.method.mechanism
    assert few.max_units(OWNER) == all_.max_units(OWNER) > 0
    assert code(table, few) == ""
