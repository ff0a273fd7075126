"""What a simulation scores: rows that nothing was fitted to, against the label as it is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from colonnade.client import JobOptions, PartyOffer
from colonnade.client.builder import build_job
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.methods.job import Job
from colonnade.simulate.data.held_out import MAX_ROWS, Divided, divide, rows_held_out
from colonnade.simulate.evaluation.quality import reference_scores, scored
from colonnade.simulate.sites import Site, SiteColumn

N_ROWS, HELD_OUT = 900, 200
BOUNDS = Bounds(-2.0, 2.0)
PATH = [{"round": 0, "coef": {"a": [0.0, 0.0], "b": [0.5]}, "intercept": 0.25}]


def sites() -> list[Site]:
    draw = np.random.default_rng(7)
    values = draw.uniform(-1.0, 1.0, (3, N_ROWS))
    label = SiteColumn("y", BOUNDS, 3.0 * values[0] + values[2])  # beyond its bounds at times
    names = {"a": ("x0", "x1"), "b": ("x2",)}
    columns = {
        f"x{place}": SiteColumn(f"x{place}", BOUNDS, row) for place, row in enumerate(values)
    }
    return [Site(party, [columns[n] for n in own], label) for party, own in names.items()]


def a_job(divided: Divided) -> Job:
    offers = [
        PartyOffer(
            party=site.party,
            attached=True,
            dataset="ab" * 16,
            population=divided.n_rows,
            features={column.name: column.bounds for column in site.features},
            fills={column.name: column.bounds.middle for column in site.features},
            label=("y", BOUNDS),
            cap_units=2**50,
            used_units=0,
        )
        for site in divided.fitted
    ]
    return build_job(offers, JobOptions(method="moments"), target="y")


def with_labels(divided: Divided, values: Any) -> Divided:
    """Return other labels for the rows held out."""
    assert divided.held_out is not None
    label = SiteColumn("y", BOUNDS, values)
    return replace(divided, held_out=[replace(site, label=label) for site in divided.held_out])


def test_the_same_random_rows_are_held_out_of_every_table_and_none_is_fitted() -> None:
    divided = divide(sites(), HELD_OUT, seed=1)
    assert divided.held_out is not None
    whole = np.array([column.values for site in sites() for column in site.features])
    parts = [
        np.array([column.values for site in part for column in site.features])
        for part in (divided.fitted, divided.held_out)
    ]
    assert [part.shape[1] for part in parts] == [N_ROWS - HELD_OUT, HELD_OUT]
    rows = {tuple(row) for row in whole.T.tolist()}
    fitted, held_out = ({tuple(row) for row in part.T.tolist()} for part in parts)
    assert fitted | held_out == rows
    assert not fitted & held_out
    again, other = (divide(sites(), HELD_OUT, seed=seed).held_out for seed in (1, 2))
    assert again is not None
    assert other is not None
    assert again[0].features[0].values.tolist() == parts[1][0].tolist()
    assert other[0].features[0].values.tolist() != parts[1][0].tolist()


def judged(job: Job, divided: Divided) -> dict[str, Any]:
    found = reference_scores(job, divided, seed=0)
    return scored(job, PATH, divided, references=found)


def test_without_references_the_same_scores_stand_alone() -> None:
    divided = divide(sites(), HELD_OUT, seed=1)
    job = a_job(divided)
    beside, alone = judged(job, divided), scored(job, PATH, divided, references=None)
    assert alone["central"] is None
    assert alone["nonprivate"] is None
    assert beside["central"] is not None
    assert (alone["ours"], alone["by_round"]) == (beside["ours"], beside["by_round"])


def test_scores_are_of_the_rows_held_out_and_their_labels_teach_nobody() -> None:
    divided = divide(sites(), HELD_OUT, seed=1)
    assert divided.held_out is not None
    job = a_job(divided)
    first = judged(job, divided)
    assert (first["rows"], first["n_rows"]) == ("held-out", HELD_OUT)
    assert first["nonprivate"] > 0.999  # the label is linear, and no bounds clip it here
    # What is scored is what the model predicts in the label's own unit.
    (column,), label = divided.held_out[1].features, divided.held_out[1].label
    assert label is not None
    rest = label.values - 2.0 * (0.5 * column.values / 2.0 + 0.25)
    expected = 1.0 - (rest**2).sum() / ((label.values - label.values.mean()) ** 2).sum()
    assert first["ours"] == first["by_round"][-1] == pytest.approx(expected, abs=1e-3)
    # Other labels of these rows change their scores by exactly what they are, and no model: were
    # one fitted to them, the reference would follow.
    turned = judged(job, with_labels(divided, -label.values))
    assert turned["nonprivate"] < -2.9  # 1 - 4, around a mean of nearly 0


def test_fitted_rows_are_scored_only_if_nothing_is_held_out() -> None:
    divided = divide(sites(), 0, seed=1)
    found = judged(a_job(divided), divided)
    assert (found["rows"], found["n_rows"]) == ("fitted", N_ROWS)


def test_missing_values_are_scored_as_the_middle_of_the_declared_bounds() -> None:
    divided = divide(sites(), HELD_OUT, seed=1)
    job = a_job(divided)
    tight = tuple(
        replace(each, bounds=(Bounds(0.0, 1.0),) * len(each.bounds)) for each in job.members
    )
    job = replace(job, members=tight)
    assert divided.held_out is not None

    def filled(value: float) -> float:
        gone = [
            replace(
                site,
                features=[replace(c, values=np.full(HELD_OUT, value)) for c in site.features],
            )
            for site in divided.held_out or ()
        ]
        return float(judged(job, replace(divided, held_out=gone))["ours"])

    assert filled(np.nan) == filled(BOUNDS.middle)
    assert filled(np.nan) != filled(0.5)  # the middle of the job's bounds


def test_a_part_of_the_rows_is_held_out_and_never_too_many() -> None:
    counts = [rows_held_out(part, rows) for part, rows in ((0.2, 500), (0.2, 10**6), (0.0, 500))]
    assert counts == [100, MAX_ROWS, 0]
    for part in (-0.1, 1.0, float("nan")):
        with pytest.raises(BadInput, match="holdout"):
            rows_held_out(part, 100)
    with pytest.raises(BadInput, match="1 of 900"):
        divide(sites(), N_ROWS - 1, seed=0)
