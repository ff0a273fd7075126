"""What an evaluation's noisy sums say: AUC or R2, log-loss, calibration, each with its error.

Errors are standard errors: the noise, whose size is public, and the sampling of the people.

Privacy: arithmetic on one release (post-processing: Dwork and Roth 2014, Proposition 2.1).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.methods.evaluation.rows import COUNT, LABEL, MAX_LOGIT, centres
from colonnade.methods.evaluation.spec import EvaluationSpec
from colonnade.methods.holdout import rows_held_out
from colonnade.methods.problem import Loss

METRICS = {Loss.LOGISTIC: "auc", Loss.SQUARED: "r2"}
_GROUPS = 10
_LEAST_PEOPLE = 10.0
_DIGITS = 5
_LEAST_VARIANCE = 1e-3  # of a label, in half widths
# What is assumed of a model before it is evaluated, to say how large the error will be.
_USUAL_AUC_APART, _USUAL_R2 = 1.0, 0.5


@dataclass(frozen=True, slots=True)
class Measured:
    """A number and its standard error."""

    value: float
    error: float


def evaluated(spec: EvaluationSpec, sums: IntArray) -> dict[str, Any]:
    """Return what a report shows of an evaluation, as JSON values."""
    found = sums.astype(np.float64)
    sigma, rows = math.sqrt(spec.mechanism.sigma2), rows_held_out(spec.n_rows, spec.holdout).size
    if spec.loss is Loss.LOGISTIC:
        negative, positive = found[: spec.buckets], found[spec.buckets :]
        measured, metric = auc(positive, negative, sigma), "auc"
        people = _people(float(found.sum()), rows, sigma * found.size**0.5)
        loss = log_loss(positive, negative, sigma)
        extra = {
            "log_loss": round(loss.value, _DIGITS),
            "log_loss_error": round(loss.error, _DIGITS),
            "calibration": _class_groups(positive, negative, sigma),
        }
    else:
        measured, metric = r2(found, rows, sigma), "r2"
        counted = float(found[: spec.buckets].sum()) / COUNT
        people = _people(counted, rows, sigma * spec.buckets**0.5 / COUNT)
        extra = {"calibration": _value_groups(spec, found, sigma)}
    return {
        "metric": metric,
        "value": round(measured.value, _DIGITS),
        "error": round(measured.error, _DIGITS),
        "n_rows": max(round(people), 0),
        **extra,
    }


def auc(positive: FloatArray, negative: FloatArray, sigma: float) -> Measured:
    """Return the area under the ROC curve of two histograms, ties counting half.

    The sampling error is that of Hanley and McNeil (1982); the noise's follows from derivatives.
    """
    there, others = max(float(positive.sum()), 1.0), max(float(negative.sum()), 1.0)
    below = (np.cumsum(negative) - negative / 2.0) / others
    above = (np.cumsum(positive[::-1])[::-1] - positive / 2.0) / there
    value = min(max(float(positive @ below) / there, 0.0), 1.0)
    noise = float(np.sum((below - value) ** 2)) / there**2
    noise += float(np.sum((above - value) ** 2)) / others**2
    first, second = value / (2.0 - value), 2.0 * value**2 / (1.0 + value)
    sampling = value * (1.0 - value) + (there - 1.0) * (first - value**2)
    sampling = (sampling + (others - 1.0) * (second - value**2)) / (there * others)
    return Measured(value, math.sqrt(max(sampling, 0.0) + sigma**2 * noise))


def log_loss(positive: FloatArray, negative: FloatArray, sigma: float) -> Measured:
    """Return the mean log-loss of the buckets' middle probabilities."""
    logits = MAX_LOGIT * centres(positive.size)
    counts = np.concatenate([positive, negative])
    losses = np.concatenate([np.logaddexp(0.0, -logits), np.logaddexp(0.0, logits)])
    total = max(float(counts.sum()), 1.0)
    value = max(float(counts @ losses) / total, 0.0)
    around = losses - value
    spread = max(float(counts @ around**2), 0.0) + sigma**2 * float(around @ around)
    return Measured(value, math.sqrt(spread) / total)


def r2(sums: FloatArray, n_rows: int, sigma: float) -> Measured:
    """Return the share of the label's variance that predictions explain, within -1 and 1.

    ``sums`` are as released, ``sigma`` is their noise's. The mean's square is known with an error
    of its own, whose expectation is taken off.
    """
    buckets = sums.size // 2 - 1
    people = _people(float(sums[:buckets].sum()) / COUNT, n_rows, sigma * buckets**0.5 / COUNT)
    mean = float(sums[buckets:-2].sum()) / LABEL / people
    off = sigma * buckets**0.5 / LABEL / people
    square, residual = (float(each) / GRID / people for each in sums[-2:])
    variance = max(square - max(mean**2 - off**2, 0.0), _LEAST_VARIANCE)
    value = min(max(1.0 - residual / variance, -1.0), 1.0)
    fine, slope = sigma / GRID / people, max(residual, 0.0) / variance**2
    noise = (fine / variance) ** 2 + (fine * slope) ** 2
    noise += slope**2 * ((2.0 * mean * off) ** 2 + 2.0 * off**4)
    known = min(max(value, 0.0), 1.0)
    sampling = 4.0 * known * (1.0 - known) ** 2 / people  # of a squared correlation: Fisher 1915
    return Measured(value, min(math.sqrt(noise + sampling), 1.0))


def _people(noisy: float, n_rows: int, error: float) -> float:
    """Return how many people there are: all rows, unless counts clearly say that some are absent.

    The rows are public; whether a person is present at the party is not.
    """
    return float(n_rows) if noisy > n_rows - 3.0 * error else max(noisy, 1.0)


def expected_error(spec: EvaluationSpec, present: float | None = None) -> float:
    """Return the error to expect, for a model that ranks 3 of 4 pairs right or explains half.

    ``present`` is how many rows are people whom the party has; by default all.
    """
    people = max((spec.n_rows if present is None else present) * spec.holdout / 1000.0, 2.0)
    return usual_error(people, spec.buckets, spec.mechanism.sigma2, spec.loss)


def usual_error(people: float, buckets: int, sigma2: int, loss: Loss) -> float:
    """Return the error of a usual model's metric on so many people, under noise of this size."""
    sigma = math.sqrt(sigma2)
    if loss is not Loss.LOGISTIC:
        made = np.zeros(2 * buckets + 2)
        made[0] = people * COUNT
        # A deviation of 0.4 half widths.
        made[-2:] = 0.16 * people * GRID, 0.16 * (1.0 - _USUAL_R2) * people * GRID
        return round(r2(made, round(people), sigma).error, 4)
    logits = MAX_LOGIT * centres(buckets)
    shapes = [np.exp(-((logits - side * _USUAL_AUC_APART / 2.0) ** 2) / 2.0) for side in (1, -1)]
    positive, negative = (people / 2.0 * shape / shape.sum() for shape in shapes)
    return round(auc(positive, negative, sigma).error, 4)


def _groups(people: FloatArray) -> list[slice]:
    """Return runs of buckets with about a tenth of the people each."""
    least = max(float(people.sum()) / _GROUPS, _LEAST_PEOPLE)
    runs, first, held = [], 0, 0.0
    for place, count in enumerate(people):
        held += float(count)
        if held >= least:
            runs.append(slice(first, place + 1))
            first, held = place + 1, 0.0
    return runs


def _class_groups(positive: FloatArray, negative: FloatArray, sigma: float) -> list[dict[str, Any]]:
    middles = 1.0 / (1.0 + np.exp(-MAX_LOGIT * centres(positive.size)))
    found = []
    for run in _groups(positive + negative):
        people = float((positive + negative)[run].sum())
        weights = np.maximum((positive + negative)[run], 0.0)
        observed = float(positive[run].sum()) / people
        known = min(max(observed, 0.0), 1.0)
        cells = 2.0 * (run.stop - run.start)
        error = math.sqrt(known * (1.0 - known) / people + cells * (sigma / people) ** 2)
        found.append(_group(float(weights @ middles[run]) / float(weights.sum()), known, error))
    return found


def _value_groups(spec: EvaluationSpec, sums: FloatArray, sigma: float) -> list[dict[str, Any]]:
    buckets, bounds = spec.buckets, spec.fitted().label.bounds
    counts, labels = sums[:buckets] / COUNT, sums[buckets:-2] / LABEL
    middles = centres(buckets)
    left = max(float(sums[-1]) / GRID, 0.0) / max(float(counts.sum()), 1.0)
    found = []
    for run in _groups(counts):
        people, weights = float(counts[run].sum()), np.maximum(counts[run], 0.0)
        observed = float(labels[run].sum()) / people
        cells = float(run.stop - run.start)
        noise = cells * (1.0 / LABEL**2 + (observed / COUNT) ** 2) * (sigma / people) ** 2
        error = math.sqrt(left / people + noise) * bounds.half_width
        predicted = float(weights @ middles[run]) / float(weights.sum())
        found.append(_group(_unit(predicted, bounds), _unit(observed, bounds), error))
    return found


def _unit(scaled: float, bounds: Bounds) -> float:
    return bounds.middle + bounds.half_width * scaled


def _group(predicted: float, observed: float, error: float) -> dict[str, Any]:
    values = {"predicted": predicted, "observed": observed, "error": error}
    return {name: float(f"{value:.5g}") for name, value in values.items()}
