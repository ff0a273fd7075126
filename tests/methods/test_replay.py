"""A job's model computed again from signed releases: the same bits, or a refusal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.aligning import in_a_loop
from support.federation import CAP, founded, make_job, reference
from support.predicting import Tabletop, table_of, trained

from colonnade.client.predict_builder import model_from_releases
from colonnade.data.integer_scores import model_digest
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.methods.job import job_id
from colonnade.methods.problem import Solution
from colonnade.methods.replay import BadEvidence
from colonnade.server.methods.registry import algorithm_of
from colonnade.server.methods.sealed.job import solve_sealed
from colonnade.server.methods.vertical import VerticalJob
from colonnade.v1 import jobs_pb2
from colonnade.wire.jobspec import job_to_bytes


@pytest.mark.parametrize("kind", ["moments", "frank-wolfe"])
def test_releases_lead_to_the_coordinators_model_bit_for_bit(tmp_path: Path, kind: str) -> None:
    study = table_of(tmp_path, kind=kind).study
    spec = job_to_bytes(study.job)
    state, _ = reference(founded(), study.job)  # the same noise, in one process
    model = algorithm_of(study.job, job_id(spec)).model(state)
    again = model_from_releases(spec, study.releases, Solution())
    assert model_digest(again) == model_digest(model)
    assert any(feature.coef_scaled for feature in again.features)


_LOGISTIC_MODELS = """
from colonnade.methods.moments.plan import recommend
from colonnade.methods.moments.solver.steps import MomentsSolver
from colonnade.methods.problem import Loss, Problem
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import make
from colonnade.simulate.inprocess.moments import run

for seed in range(4):
    data = make(2000, (9, 8), informative=5, seed=seed, loss=Loss.LOGISTIC, correlation=0.3).data()
    features = {f"p{k}": [f"x{i}" for i in split] for k, split in enumerate(data.splits)}
    spec = recommend(Problem(2000, features, 2**48, loss=Loss.LOGISTIC)).spec
    state, _ = run(data, spec, SeededNoise(seed))
    solver = MomentsSolver(spec, "job")
    print([x.hex() for coef in solver.coefficients(state).values() for x in coef.tolist()])
    print(solver.intercept(state).hex())
"""


@pytest.mark.slow
def test_machines_of_other_kinds_compute_the_same_bits() -> None:
    # Threads and kernels of the linear-algebra library stand for other machines: unrounded, the
    # calibrations of all four models differ in their last bits between these two.
    found = []
    for machine in ({}, {"OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Nehalem"}):
        done = subprocess.run(
            [sys.executable, "-c", _LOGISTIC_MODELS],
            env={**os.environ, **machine},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(done.stdout)
    assert found[0] == found[1]
    assert len(found[0].splitlines()) == 8
    assert "0x1." in found[0]


@in_a_loop
async def test_a_sealed_jobs_model_follows_from_what_its_coordinator_keeps(tmp_path: Path) -> None:
    # Nothing that was relayed is kept; what is left leads to the coordinator's model all the same.
    study = await trained(tmp_path, kind="sealed")
    kinds = {each.key.kind.partition(".")[0] for e in study.releases for each in e.releases}
    assert kinds == {"means", "gram", "open"}
    table = Tabletop(study)  # the same noise, in one process
    for name in study.names:
        study.ledgers[name] = memory_ledger(LedgerConfig(name, {"": CAP}, simulation=True))
    study.write_policies("")
    for name in study.names:
        table.restart(name)
    sent = table.run(study.job)[1]
    spec = job_to_bytes(study.job)
    steps = algorithm_of(study.job, job_id(spec))
    assert isinstance(steps, VerticalJob)
    state = steps.start()
    while not steps.finished(state):
        here = {name: [e for e in sent[name] if e.key.round == state.round] for name in sent}
        answers = {name: {e.key.kind: e.body for e in each} for name, each in here.items() if each}
        state = steps.absorb(state, answers)
    again = model_from_releases(spec, study.releases, Solution())
    assert model_digest(again) == model_digest(steps.model(state))
    assert any(feature.coef_scaled for feature in again.features)
    other = model_from_releases(spec, study.releases, Solution("ridge", {"strength": 0.1}))
    assert model_digest(other) == model_digest(
        solve_sealed(steps, state, "ridge", {"strength": 0.1})
    )


def test_a_round_that_lacks_an_answer_leads_nowhere(tmp_path: Path) -> None:
    # A Frank-Wolfe step without a party's answer is a step too: only the count of answers tells.
    study = table_of(tmp_path, kind="frank-wolfe").study
    for party, round_ in ((0, 1), (2, 5)):
        shown = [jobs_pb2.PartyReleases.FromString(e.SerializeToString()) for e in study.releases]
        left = [each for each in shown[party].releases if each.key.round != round_]
        del shown[party].releases[:]
        shown[party].releases.extend(left)
        with pytest.raises(BadEvidence) as refused:
            model_from_releases(job_to_bytes(study.job), shown, Solution())
        assert refused.value.code == "bad_evidence"


def test_a_method_with_one_solution_has_no_other(tmp_path: Path) -> None:
    study = table_of(tmp_path, kind="frank-wolfe").study
    with pytest.raises(BadEvidence):
        model_from_releases(job_to_bytes(study.job), study.releases, Solution("ridge"))
    other = make_job(founded(), study.names, salt=1)
    with pytest.raises(BadEvidence):  # of another job
        model_from_releases(job_to_bytes(other), study.releases, Solution())
