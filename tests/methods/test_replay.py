"""A job's model computed again from signed releases: the same bits, or a refusal."""

from pathlib import Path

import pytest
from support.federation import founded, make_job, reference
from support.predicting import table_of

from colonnade.client.predict_builder import model_from_releases
from colonnade.data.integer_scores import model_digest
from colonnade.methods.job import job_id
from colonnade.methods.problem import Solution
from colonnade.methods.replay import BadEvidence
from colonnade.server.methods.registry import algorithm_of
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
