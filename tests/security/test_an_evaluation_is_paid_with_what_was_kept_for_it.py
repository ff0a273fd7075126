"""A job sets its evaluation's price aside at the label's owner, and no later job can spend it."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.federation import CAP, N_ROWS
from support.predicting import Study, Tabletop

from colonnade.client.description import evaluation_plan
from colonnade.client.evaluate_builder import EvaluateOptions, author_evaluation
from colonnade.client.predict_builder import model_from_releases
from colonnade.methods.holdout import rows_fitted, rows_held_out
from colonnade.methods.job import Job
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.problem import Solution
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.server.engine.rounds import Run
from colonnade.server.engine.status import job_status
from colonnade.server.store.base import JobRow
from colonnade.server.store.sql import Database
from colonnade.wire.jobspec import job_from_bytes, job_to_bytes

HOLDOUT, OWNER = 300, "hospital"
PRICE = units_down(rho_of(1.0, 1e-6))


def cheap(job: Job, salt: int) -> Job:
    """Return the same job at a small price, with another name."""
    method = job.method
    assert isinstance(method, MomentsSpec)
    prices = dict.fromkeys(("mean_units", "gram_units", "share_units", "cross_units"), 2**30)
    less = replace(method, **prices)  # type: ignore[arg-type]
    return replace(job, salt=bytes([salt]) * 16, method=less, evaluation_units=0)


@pytest.fixture
def table(tmp_path: Path) -> Tabletop:
    """Return parties around a table, and a job that is to be evaluated and leaves nothing more."""
    study = Study(tmp_path, ("hospital", "laboratory", "insurer"))
    method = replace(study.job.method, n_rows=rows_fitted(N_ROWS, HOLDOUT))  # type: ignore[type-var]
    study.job = replace(study.job, method=method, holdout=HOLDOUT, evaluation_units=PRICE)
    table = Tabletop(study)
    for name, ledger in study.ledgers.items():
        ledger.set_cap(study.job.max_units(name), reason="exactly this job")
    return table


def allow_evaluation(table: Tabletop) -> None:
    usual = (table.study.policy(OWNER)).read_text() if table.study.policy(OWNER).exists() else ""
    assert not usual
    table.grant(table.study.grant())
    text = table.study.policy(OWNER).read_text()
    start = text.index("[[allow]]")
    lines = text[start : text.index("[[predict]]")].splitlines()
    allow = [each for each in lines if not each.startswith("kinds")] + ['kinds = ["evaluation"]']
    table.grant(table.study.grant() + "\n".join([*allow, ""]))


def evaluation(table: Tabletop, run: str, epsilon: float | None = None) -> Job:
    study = table.study
    model = model_from_releases(job_to_bytes(study.job), study.releases, Solution())
    dataset = study.job.members[0].dataset
    offers = [replace(each, dataset=dataset, used_units=CAP) for each in study.offers()]
    options = EvaluateOptions(epsilon)
    return author_evaluation(study.job_id, study.job, run, model, options, offers=offers)


def test_the_owner_alone_sets_it_aside_and_the_plan_says_so(table: Tabletop) -> None:
    job = table.study.job
    assert job_from_bytes(job_to_bytes(job)) == job
    prices = [job.max_units(name) - job.method.max_units(name) for name in table.study.names]
    assert prices == [PRICE, 0, 0]
    told = evaluation_plan(job)
    assert told is not None
    assert (told["party"], told["metric"]) == (OWNER, "r2")
    assert told["epsilon"] == pytest.approx(1.0, rel=1e-6)
    # A binomial count of 300 at 0.3, estimated from the rest: 90, give or take 8, and 0.7 of that.
    assert told["people"] == pytest.approx(rows_held_out(N_ROWS, HOLDOUT).size, abs=40)
    assert evaluation_plan(replace(job, evaluation_units=0)) is None


def test_the_plan_counts_only_people_whom_the_alignment_saw_at_the_owner(table: Tabletop) -> None:
    job = replace(table.study.job, evaluation_units=10_000 * PRICE)  # sampling errs, hardly noise
    whole, half = evaluation_plan(job), evaluation_plan(job, {(OWNER,): N_ROWS // 2})
    assert whole is not None
    assert half is not None
    rows = job.population / (1.0 - HOLDOUT / 1000.0)
    assert half["people"] == pytest.approx(whole["people"] * N_ROWS / 2 / rows, abs=1)
    assert half["expected_error"] > 1.3 * whole["expected_error"]  # by root two or more
    # Counts have noise: more people than rows are as many as rows, and others' counts say nothing.
    assert evaluation_plan(job, {(OWNER,): 9 * N_ROWS}) == whole
    assert evaluation_plan(job, {(OWNER, "x"): 1}) == whole


def test_no_later_job_spends_what_the_evaluation_needs(table: Tabletop) -> None:
    table.train()
    ledger = table.study.ledgers[OWNER]
    assert ledger.state.kept == {table.study.job_id: PRICE}
    assert ledger.free() == 0
    later = cheap(table.study.job, 7)
    assert table.codes(later)[OWNER] == "budget_exceeded"
    allow_evaluation(table)
    run, _ = table.run(table.study.request(rows_held_out(N_ROWS, HOLDOUT).tolist()))
    asked = evaluation(table, run)
    # Noise has an integer variance: the price is the greatest one up to what was kept.
    assert 0.999 * PRICE < (price := asked.max_units(OWNER)) <= PRICE
    # One that does not fit leaves what was kept to one that does.
    wrong = evaluation(table, "ab" * 32)
    assert table.vaults[OWNER].consider(job_to_bytes(wrong)).code == "policy_refused"
    assert ledger.state.kept
    before = ledger.state.total
    table.run(asked)
    assert ledger.state.total - before == price
    assert (ledger.state.kept, ledger.state.reserved[""]) == ({}, 0)


def test_a_job_that_failed_keeps_nothing_also_after_a_restart(table: Tabletop) -> None:
    spec = job_to_bytes(table.study.job)
    assert table.vaults[OWNER].consider(spec).accepted
    ledger = table.study.ledgers[OWNER]
    assert ledger.free() == 0
    table.restart(OWNER)
    (name,) = ledger.state.left
    table.vaults[OWNER].close_job(name, finished=False)
    assert (ledger.state.kept, ledger.free()) == ({}, ledger.state.cap())


def test_a_job_that_finished_while_the_party_was_away_keeps_it(table: Tabletop) -> None:
    spec = job_to_bytes(table.study.job)
    assert table.vaults[OWNER].consider(spec).accepted
    table.restart(OWNER)
    ledger = table.study.ledgers[OWNER]
    (name,) = ledger.state.left
    table.vaults[OWNER].close_job(name, finished=True)
    assert ledger.state.kept == {name: PRICE}
    assert ledger.free() == ledger.state.cap() - PRICE


def test_what_a_report_says_the_fit_costs_is_without_the_evaluation(table: Tabletop) -> None:
    # It is told besides, once it was spent; in both it would count twice.
    job = table.study.job
    run = Run.load(
        Database("sqlite://"),
        JobRow("ab" * 32, job_to_bytes(job), "test", 0.0),
        now=0.0,
    )
    told = {each.party: each.max_units for each in job_status(run).parties}
    assert told == {name: job.method.max_units(name) for name in table.study.names}
