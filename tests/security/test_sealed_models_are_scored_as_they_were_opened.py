"""A sealed job's model scores people only as its parties' signed openings lead to it."""

from dataclasses import replace

import numpy as np
import pytest
from support.federation import NAMES, sites
from support.predicting import Tabletop, table_of

from colonnade.client.predict_builder import model_from_releases
from colonnade.methods.job import Job
from colonnade.methods.prediction.spec import PredictionSpec
from colonnade.methods.problem import Solution
from colonnade.v1 import jobs_pb2
from colonnade.wire.codec import release_from_proto
from colonnade.wire.jobspec import job_to_bytes

RIDGE = Solution("ridge", {"strength": 0.1})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Tabletop:
    return table_of(tmp_path_factory.mktemp("study"), kind="sealed")


def changed(job: Job, **changes: object) -> Job:
    assert isinstance(job.method, PredictionSpec)
    return replace(job, method=replace(job.method, **changes))  # type: ignore[arg-type]


def shown(table: Tabletop) -> list[jobs_pb2.PartyReleases]:
    return [jobs_pb2.PartyReleases.FromString(e.SerializeToString()) for e in table.study.releases]


def with_evidence(job: Job, found: list[jobs_pb2.PartyReleases]) -> Job:
    evidence = tuple((e.party, tuple(r.SerializeToString() for r in e.releases)) for e in found)
    return changed(job, evidence=evidence)


def test_scores_are_those_of_a_joined_table_bit_for_bit(table: Tabletop) -> None:
    name, _ = table.run(table.study.request([5, 7, 90]))
    model = model_from_releases(job_to_bytes(table.study.job), table.study.releases, Solution())
    columns = {f"{s.party}.{c.name}": c.values for s in sites(names=NAMES) for c in s.features}
    rows, scores, _ = table.scores(name)
    assert rows == [5, 7, 90]
    assert scores.tobytes() == model.decision_function(columns)[rows].tobytes()
    assert {each.party for each in model.features if each.coef_scaled} == {*table.study.names}
    assert np.ptp(scores) > 0.0


def test_other_coefficients_than_the_openings_lead_to_are_refused(table: Tabletop) -> None:
    job, ridge = table.study.request([0, 1]), table.study.request([0, 1], solution=RIDGE)
    assert isinstance(ridge.method, PredictionSpec)
    assert table.refused(changed(job, model=bytes(32))) == "model_mismatch"
    assert table.refused(changed(job, model=ridge.method.model)) == "model_mismatch"
    named = f'"{job.method.model.hex()}"'  # type: ignore[attr-defined]
    table.grant(table.study.grant(job=None, model=named))
    assert table.refused(changed(job, solution=RIDGE)) == "model_mismatch"
    table.grant(table.study.grant())


@pytest.mark.parametrize("base", ["means", "gram", "open"])
def test_an_opening_that_its_party_did_not_sign_is_no_evidence(table: Tabletop, base: str) -> None:
    found = shown(table)
    signer, release = next(
        (each.party, release)
        for each in found
        for release in each.releases
        if release.key.kind.partition(".")[0] == base
    )
    release.body = bytes([release.body[0] ^ 1]) + release.body[1:]
    job = table.study.request([0, 1])
    assert table.refused(with_evidence(job, found)) == "bad_evidence"
    # Signed by its party after all, which has another one in its ledger: it leads elsewhere.
    receipt = release_from_proto(release).receipt
    release.receipt.signature = table.study.ledgers[signer].sign(receipt.statement())
    codes = table.codes(with_evidence(job, found))
    assert codes.pop(signer) == "bad_evidence"
    assert set(codes.values()) == {"model_mismatch"}


def test_a_release_too_few_or_of_what_is_only_relayed_is_no_evidence(table: Tabletop) -> None:
    job, found = table.study.request([0, 1]), shown(table)
    del found[0].releases[-1]
    assert table.refused(with_evidence(job, found)) == "bad_evidence"
    found = shown(table)
    extra = found[1].releases.add()
    extra.CopyFrom(found[1].releases[-1])
    extra.key.kind = "reply.0"
    assert table.refused(with_evidence(job, found)) == "bad_evidence"
