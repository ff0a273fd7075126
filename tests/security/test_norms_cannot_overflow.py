"""So many numbers of a row are scaled into the ball together that their squares cannot overflow."""

from dataclasses import replace

import numpy as np
import pytest

from colonnade.linear.ball import BALL, MAX_OUTPUTS, Projection
from colonnade.methods.base import Part
from colonnade.methods.moments.rows import MAX_SKETCH, back_rows, inner_products
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.moments.tasks import Task
from colonnade.sketching.sparse import SparseSketch

SKETCH = SparseSketch(b"m", 3, 1)


def spec_of(parties: int, directions: int) -> MomentsSpec:
    names = tuple(f"x{i}" for i in range(directions))
    return MomentsSpec(
        n_rows=100,
        parts=tuple(Part(f"p{k}", names, holds_label=True) for k in range(parties)),
        mean_units=1000,
        gram_units=1000,
        share_units=1000,
        cross_units=1000,
        directions=directions,
        probes=directions,
        sketch_dim=16,
    )


def test_rows_stay_in_the_ball_at_the_bound() -> None:
    # Each entry saturates at 2**24: the squares sum to 2**60, the most that there can be.
    largest = np.full((MAX_OUTPUTS, 1), MAX_SKETCH)
    largest[::2] *= -1
    rows = back_rows(largest, SKETCH, start=0, stop=3).astype(np.int64)
    norms = (rows**2).sum(axis=0)
    assert (norms <= BALL**2).all()
    # BALL / 64 is whole, so nothing is lost to rounding.
    assert np.abs(rows).min() == np.abs(rows).max() == BALL // 64


@pytest.mark.parametrize("count", [0, MAX_OUTPUTS + 1, 2**15, 2**15 + 1])
def test_more_sketches_are_refused_wherever_they_come_from(count: int) -> None:
    sketches = np.zeros((count, 1), np.int64)
    rows = np.zeros((1, 3), np.int16)
    for refused in (
        lambda: Task(1, sketches=sketches),
        lambda: back_rows(sketches, SKETCH, start=0, stop=3),
        lambda: inner_products(rows, sketches, SKETCH),
        lambda: Projection(np.zeros((count, 1), np.int64), np.zeros(count, np.int64)),
    ):
        with pytest.raises(ValueError, match="4096"):
            refused()


def test_a_job_with_more_directions_than_that_is_refused_before_anything_is_asked() -> None:
    spec = spec_of(3, MAX_OUTPUTS // 2)
    assert spec.n_others(spec.parts[0]) == MAX_OUTPUTS
    wider = Part("p3", ("z",), holds_label=True)
    with pytest.raises(ValueError, match="4096"):
        replace(spec, parts=(*spec.parts, wider))
    # Where nothing is shared nothing is scaled together.
    replace(spec, parts=(*spec.parts, wider), share_units=0, cross_units=0)
