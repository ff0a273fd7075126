"""Evaluations: bounded sums for any row, honest errors, and nobody who was fitted."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.errors import BadMessage, PolicyRefused
from colonnade.core.fixedpoint import GRID
from colonnade.data.integer_scores import model_digest
from colonnade.data.model import LinearModel, ModelFeature, ModelLabel
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.gate import Gate
from colonnade.methods.base import Part
from colonnade.methods.evaluation.metrics import evaluated, expected_error
from colonnade.methods.evaluation.rows import (
    CLASS_SENSITIVITY2,
    VALUE_SENSITIVITY2,
    class_sums,
    value_sums,
)
from colonnade.methods.evaluation.spec import BUCKETS, SUMS, EvaluationSpec
from colonnade.methods.holdout import held_out, rows_fitted, rows_held_out
from colonnade.methods.problem import Loss
from colonnade.party.data.columns import HeldColumns
from colonnade.party.methods.base import JobContext
from colonnade.party.methods.evaluation import EvaluationAnswers
from colonnade.privacy.accounting import MAX_UNITS, rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.server.methods.evaluation import EvaluationJob, EvaluationState
from colonnade.simulate.inprocess.vertical import auc, r2

ROWS = 40_000
MODEL = LinearModel(
    "ab" * 32,
    "squared",
    ModelLabel("y", 0.0, 10.0),
    0.0,
    (ModelFeature("p", "x", -1.0, 1.0, 0.0, 1.0),),
    private=True,
)


def spec_of(loss: Loss, epsilon: float = 0.3) -> EvaluationSpec:
    return EvaluationSpec(
        training="ab" * 32,
        run="cd" * 32,
        model=MODEL.to_json(),
        holdout=250,
        n_rows=ROWS,
        part=Part("p", ("x",), holds_label=True),
        units=units_down(rho_of(epsilon, 1e-6)),
        buckets=BUCKETS[loss],
        loss=loss,
    )


@dataclass(frozen=True)
class Received:
    """Scores that a party was sent."""

    rows: IntArray
    scores: FloatArray

    def has(self, run: str, model: bytes = b"") -> bool:
        return run == "cd" * 32 and model in (b"", model_digest(MODEL))

    def of(self, run: str) -> tuple[IntArray, FloatArray]:
        assert self.has(run)
        return self.rows, self.scores


def people(loss: Loss, seed: int) -> tuple[FloatArray, IntArray]:
    """Return made-up scores and labels of all rows: logits and classes, or values."""
    draw = np.random.default_rng(seed)
    score = draw.standard_normal(ROWS) * (1.5 if loss is Loss.LOGISTIC else 0.25)
    if loss is Loss.LOGISTIC:
        positive = draw.random(ROWS) < 1.0 / (1.0 + np.exp(-score))
        return score, np.where(positive, GRID, -GRID)
    label = np.clip(score + 0.2 * draw.standard_normal(ROWS), -1.0, 1.0)
    return score, np.rint(label * GRID).astype(np.int64)


def released(spec: EvaluationSpec, scores: Received, label: IntArray, seed: int) -> bytes:
    ledger = memory_ledger(LedgerConfig("p", {"": MAX_UNITS}, simulation=True))
    columns = HeldColumns(np.zeros((1, ROWS), np.int16), label.astype(np.int16))
    context = JobContext(
        "ef" * 32, "p", "00" * 16, columns, Gate(ledger, SeededNoise(seed)), ledger, scores=scores
    )
    ledger.admit(context.job_id, units=spec.max_units("p"))
    (release,) = EvaluationAnswers.of(spec, context).answer(1, b"")
    assert ledger.state.total == spec.max_units("p") > 0
    return release.body


@pytest.mark.parametrize("loss", [Loss.SQUARED, Loss.LOGISTIC])
def test_no_row_moves_the_sums_by_more_than_is_paid_for(loss: Loss) -> None:
    draw = np.random.default_rng(1)
    odd = [0.0, 1.0, -1.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.05, -0.049]
    labels = [0, GRID, -GRID, 1, -1, 32_767, -32_768, GRID // 2]
    most = 0
    for _ in range(3000):
        scores, label = draw.choice(odd, 4), draw.choice(labels, 4).astype(np.int64)
        others, other_label = scores.copy(), label.copy()
        others[0], other_label[0] = draw.choice(odd), draw.choice(labels)
        make = class_sums if loss is Loss.LOGISTIC else value_sums
        moved = make(scores, label, buckets=8) - make(others, other_label, buckets=8)
        most = max(most, int(moved @ moved))
    bound = CLASS_SENSITIVITY2 if loss is Loss.LOGISTIC else VALUE_SENSITIVITY2
    assert 0.5 * bound < most <= bound  # the bound is no waste either


@pytest.mark.parametrize("loss", [Loss.SQUARED, Loss.LOGISTIC])
def test_errors_are_those_of_noise_and_sampling(loss: Loss) -> None:
    # 60 releases of the same people: their spread is the noise alone. With the metric's error made
    # of noise e and sampling s, the mean square of (value - exact) / e is 1, and that of 60 errs by
    # sqrt(2 / 60) = 0.18; half the noise would give 0.25, and twice the noise 4.
    spec = spec_of(loss, 0.2)
    score, label = people(loss, 3)
    rows = rows_held_out(ROWS, 250)
    scores = Received(rows, score[rows])
    held, target = score[rows], label[rows] / GRID
    exact = auc(target, held) if loss is Loss.LOGISTIC else r2(target, held)
    found = []
    for seed in range(60):
        body = released(spec, scores, label, seed)
        found.append(evaluated(spec, np.frombuffer(body, "<i8").astype(np.int64)))
    values = np.array([each["value"] for each in found])
    quiet = replace(spec, units=2**50)
    body = released(quiet, scores, label, 1)
    sampling = evaluated(quiet, np.frombuffer(body, "<i8").astype(np.int64))["error"]
    noise2 = np.mean([each["error"] ** 2 for each in found]) - sampling**2
    # Buckets of logits and squares rounded down on the grid are within 0.002 of the exact value.
    assert abs(values.mean() - exact) < 3.0 * np.sqrt(noise2 / 60) + 0.002
    assert 0.5 < values.var() / noise2 < 1.7
    assert expected_error(spec) == pytest.approx(found[0]["error"], rel=0.6)
    assert found[0]["n_rows"] == pytest.approx(rows.size, rel=0.2)


def test_classes_have_log_loss_and_calibration() -> None:
    spec = spec_of(Loss.LOGISTIC, 1.0)
    score, label = people(Loss.LOGISTIC, 4)
    rows = rows_held_out(ROWS, 250)
    body = released(spec, Received(rows, score[rows]), label, 5)
    found = evaluated(spec, np.frombuffer(body, "<i8").astype(np.int64))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    signed = np.where(label[rows] > 0, score[rows], -score[rows])
    true, error = np.mean(np.logaddexp(0.0, -signed)), found["log_loss_error"]
    assert found["log_loss"] == pytest.approx(true, abs=3.0 * error + 0.003)
    assert error < 0.03
    groups = found["calibration"]
    assert 5 <= len(groups) <= 10
    # The scores are logits: every group is within its errors, of which 3 hold for all ten.
    for group in groups:
        assert abs(group["observed"] - group["predicted"]) < 3.0 * group["error"] + 0.01


def test_only_people_who_were_kept_out_count_and_each_once() -> None:
    spec = replace(spec_of(Loss.LOGISTIC), units=2**50)
    score, label = people(Loss.LOGISTIC, 6)
    rows = rows_held_out(ROWS, 250)
    twice = np.concatenate([np.arange(ROWS), rows])
    honest = released(spec, Received(rows, score[rows]), label, 7)
    assert released(spec, Received(twice, score[twice]), label, 7) == honest
    assert rows_fitted(ROWS, 250) + rows.size == ROWS
    assert not (held_out(ROWS, 100) & ~held_out(ROWS, 250)).any()


def test_what_does_not_fit_is_refused_before_anything_is_charged() -> None:
    spec = spec_of(Loss.LOGISTIC)
    score, label = people(Loss.LOGISTIC, 6)
    with pytest.raises(PolicyRefused):
        released(replace(spec, run="ee" * 32), Received(np.arange(3), score[:3]), label, 1)
    ledger = memory_ledger(LedgerConfig("p", {"": MAX_UNITS}, simulation=True))
    columns = HeldColumns(np.zeros((1, ROWS), np.int16), label.astype(np.int16))
    gate = Gate(ledger, SeededNoise(1))
    context = JobContext("ef" * 32, "p", "00" * 16, columns, gate, ledger)
    side = EvaluationAnswers(spec, context, Received(np.arange(3), score[:3]))
    for round_, body in ((0, b""), (1, b"\xff"), (1, b"\x08\x01")):
        with pytest.raises(BadMessage):
            side.answer(round_, body)
    assert ledger.state.total == 0
    for wrong in ({"holdout": 0}, {"holdout": 501}, {"buckets": 1}, {"training": "x"}):
        with pytest.raises(ValueError, match="evaluation"):
            replace(spec, **wrong)


def test_the_coordinators_state_reads_back_and_its_model_is_the_evaluated_one() -> None:
    spec = spec_of(Loss.SQUARED)
    steps = EvaluationJob(spec, "p")
    state = steps.absorb(steps.start(), {})
    assert (list(steps.tasks(steps.start())), list(steps.tasks(state))) == ([], ["p"])
    after = steps.absorb(state, {"p": {SUMS: bytes(spec.body_bytes("p", SUMS))}})
    assert steps.finished(after)
    assert steps.decode(steps.encode(after)) == after != EvaluationState(2)
    assert steps.model(after) == MODEL
