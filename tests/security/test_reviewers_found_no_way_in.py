"""Ways in that a review found, and that are closed: each was open once."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.predicting import Study, table_of

from colonnade.core.errors import BudgetExceeded
from colonnade.core.fixedpoint import Bounds
from colonnade.data.model import LinearModel, ModelFeature, ModelLabel
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate, request_digest
from colonnade.ledger.job_entries import Proposed
from colonnade.methods.base import Member, Part
from colonnade.methods.evaluation.spec import BUCKETS, EvaluationSpec
from colonnade.methods.job import Job
from colonnade.methods.prediction.spec import PredictionSpec
from colonnade.methods.problem import Loss, Problem, Solution
from colonnade.methods.sealed.plan import recommend
from colonnade.methods.sealed.products import Prices
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.party.officer.case import CapAt, Case, Leaving, sentences
from colonnade.privacy.accounting import RHO_UNIT, rho_of, units_down
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.simulation import SeededNoise
from colonnade.wire.jobspec import job_to_bytes

MODEL = LinearModel(
    "ab" * 32,
    "logistic",
    ModelLabel("y", 0.0, 1.0),
    0.0,
    (ModelFeature("p", "x", -1.0, 1.0, 0.0, 1.0),),
    private=True,
)


def test_an_evaluation_that_keeps_rows_out_itself_is_refused() -> None:
    # Its label would be that of the rows that are left, its scores those of all rows: one person in
    # two places, and thrice the price that is charged.
    spec = EvaluationSpec(
        training="ab" * 32,
        run="cd" * 32,
        model=MODEL.to_json(),
        holdout=500,
        n_rows=1000,
        part=Part("p", ("x",), holds_label=True),
        units=units_down(0.01),
        buckets=BUCKETS[Loss.LOGISTIC],
        loss=Loss.LOGISTIC,
    )
    member = Member("p", "00" * 16, ("x",), (Bounds(-1, 1),), (0.0,), holds_label=True)
    job = Job("e", b"s" * 16, 1e-6, 60, (member,), "y", Bounds(0, 1), spec)
    with pytest.raises(ValueError, match="rows out"):
        replace(job, holdout=300)


def test_a_job_that_waits_cannot_be_charged() -> None:
    ledger = memory_ledger(LedgerConfig("p", {"": units_down(2.0)}, simulation=True))
    spec = b"a specification"
    job = hashlib.sha256(spec).hexdigest()
    ledger.decisions.propose(
        Proposed(job, "c", "o", "x", "n", "moments", 10, "ask", 2, 0, len(spec)), spec
    )
    mechanism = DiscreteGaussian.within(units_down(0.1), l2_sensitivity2=2)
    with pytest.raises(ValueError, match="admitted"):
        Gate(ledger, SeededNoise(1)).release(
            ReleaseKey(job, 0, "k"), b"", mechanism, lambda: np.zeros(3, np.int64)
        )


def named(job: Job, study: Study, **changes: object) -> str:
    """Return a grant that names the model of a request."""
    assert isinstance(job.method, PredictionSpec)
    return study.grant(job=None, model=f'"{job.method.model.hex()}"', **changes)


def test_a_model_one_bit_away_does_not_reopen_the_party_set(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    study = table.study
    *_, left_out = study.names
    middle = f'["{left_out}"]'
    ridge = study.request([0, 1], solution=Solution("ridge", {"strength": 0.1}))
    near = Solution("ridge", {"strength": 0.1 + 1e-9})
    asked = study.request([0, 1], solution=near, purpose="research", middle=(left_out,))
    first, second = (named(job, study, middle=middle) for job in (ridge, asked))
    table.grant(first + second.replace('"triage"', '"research"'))
    table.run(ridge)
    codes = table.codes(asked)
    assert {codes[name] for name in study.names if name != left_out} == {"party_set_final"}


def test_a_model_that_uses_one_party_alone_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    study = table.study
    # On the way to the zero model a single party is left besides the receiver.
    alone = study.request([0, 1], solution=Solution("l1", {"strength": 0.43}))
    table.grant(named(alone, study))
    for name, vault in table.vaults.items():
        assert "every score would show" in vault.consider(job_to_bytes(alone)).message, name
    table.grant(study.grant())
    assert set(table.codes(study.request([0, 1])).values()) == {""}


def test_who_could_not_pay_for_a_sum_is_in_no_second_one_after_a_raise() -> None:
    caps = {"a": units_down(1.0), "z": 1}
    ledger = memory_ledger(LedgerConfig("p", caps, simulation=True))
    gate, mechanism = (
        Gate(ledger, SeededNoise(1)),
        DiscreteGaussian.within(10**9, l2_sensitivity2=2),
    )
    asks = [
        ReleaseRequest(ReleaseKey("ab" * 32, 0, "k", name), mechanism, request_digest(b"both"))
        for name in ("a", "z")
    ]
    made: list[int] = []

    def compute(keys: object) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        made.append(len(keys))  # type: ignore[arg-type]
        return np.zeros(2, np.int64)

    first = gate.release_sum(asks, compute)
    assert isinstance(first[1], BudgetExceeded)
    ledger.set_cap(units_down(1.0), reason="more", account="z")
    again = gate.release_sum(asks, compute)
    assert (again[0], type(again[1]), made) == (first[0], BudgetExceeded, [1])


def test_a_party_may_seal_more_bodies_than_there_are_parties() -> None:
    features = {name: tuple(f"{name}{place}" for place in range(24)) for name in ("a", "b")}
    units = units_down(rho_of(1.0, 1e-6))
    problem = Problem(n_rows=100_000, features=features, label_owner="a", rho_units=units)
    assert recommend(problem).spec.n_rows == 100_000


def test_a_reply_that_would_tell_a_hostile_sealer_a_table_is_refused() -> None:
    # A sealer of 999 columns that pays next to nothing: the reply to it would carry 75,468 bits.
    hostile = Part("mallory", tuple(f"h{place}" for place in range(999)), holds_label=True)
    victim = Part("alice", tuple(f"v{place}" for place in range(12)), holds_label=False)
    units = int(0.02 * RHO_UNIT)
    for shift in range(1, 60):  # the least price at which its own openings are within a key's bits
        prices = (Prices(max(units >> shift, units >> 8), max(units >> shift, 1)),)
        with pytest.raises(ValueError, match=r"bits") as refused:
            SealedSpec(
                n_rows=1000,
                parts=(hostile, victim),
                prices=(*prices, Prices(units // 10, units)),
                mean_units=units // 100,
                buckets=65536,
                reach=0.01,
            )
        if "a reply would carry" in str(refused.value):
            return
    pytest.fail("no specification came as far as its reply")


def test_a_prediction_states_one_purpose(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.grant(table.study.grant())
    job = replace(table.study.request([0, 1]), purpose="a harmless count")
    assert set(table.codes(job).values()) == {"bad_message"}


def test_an_officer_reads_that_scores_have_no_noise() -> None:
    case = Case(
        *("ab" * 32, "triage", "hub", "", "", "prediction", "prediction", 0, "p", ("q",), (), ""),
        *(10, False, (Leaving("part", 1, 80),), 0, 1e-6, (CapAt("the table", 10, 0, 0),), "", ()),
        *("waiting", 0, 1, ""),
    )
    said = " ".join(sentences(case))
    assert "WITHOUT noise" in said
    assert "exact noise" not in said
