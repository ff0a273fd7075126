"""Frank-Wolfe as a registered method."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from colonnade.linear.kernels import score
from colonnade.linear.sums import sums
from colonnade.methods.base import Member, Method, MethodPlan, Unit
from colonnade.methods.column_moments import shared_column
from colonnade.methods.frank_wolfe.codec import question, spec_from_bytes, spec_to_bytes
from colonnade.methods.frank_wolfe.plan import recommend
from colonnade.methods.frank_wolfe.residual import SCORE_SENSITIVITY, TaskParameters, residual
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec
from colonnade.methods.groups import check_same_groups
from colonnade.methods.problem import Problem
from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection
from colonnade.privacy.sampling import OsNoise
from colonnade.sketching.sparse import SparseSketch

_ROWS = 256


def _plan(problem: Problem, options: Any) -> MethodPlan[FrankWolfeSpec]:
    return recommend(
        problem,
        rounds=options.rounds,
        shares=options.shares,
        sketch_dim=options.sketch_dim,
        radius=options.radius,
        sampling=options.sampling,
        parties_per_round=options.parties_per_round,
        features_per_round=options.features_per_round,
    )


def _check(spec: FrankWolfeSpec, members: Sequence[Member]) -> None:
    check_same_groups((each.groups for each in spec.blocks), (each.groups for each in members))


def _describe(spec: FrankWolfeSpec, party: str) -> dict[str, Any]:
    block = spec.block(party)
    return {"radius": block.radius, "shares": block.shares}


def _with_rows(spec: FrankWolfeSpec, rows: int) -> FrankWolfeSpec:
    ratio = spec.n_rows / rows
    return replace(
        spec,
        n_rows=rows,
        select_units=max(1, int(spec.select_units * ratio**2)),
        mean_units=int(spec.mean_units * ratio**2),
        share_units=int(spec.share_units * ratio),
        label_units=int(spec.label_units * ratio),
        sketch_dim=min(spec.sketch_dim, 1 << (rows.bit_length() - 1)),
    )


def _warm() -> None:
    features = np.zeros((2, _ROWS), np.int16)
    features.setflags(write=False)  # as mapped tables are: other arrays would load other code
    label, noise = features[0], OsNoise()
    sketch = SparseSketch(bytes(32), _ROWS, 16, 1)
    public = TaskParameters(np.ones(2, np.int64), np.ones(16, np.int64), weight=1, clip=1)
    scores = score(features, residual(features, label, public, sketch))
    SignedSelection(2 * SCORE_SENSITIVITY, SCORE_SENSITIVITY).perturb(scores, noise)
    sums(label)
    column = shared_column(label, 0.0, 1.0, 1.0)
    DiscreteGaussian(100, 1).perturb(sketch.apply(column.reshape(1, -1))[0], noise)


FRANK_WOLFE: Method[FrankWolfeSpec] = Method(
    kind=FrankWolfeSpec.kind,
    unit=Unit.RECORD,
    encode=spec_to_bytes,
    decode=spec_from_bytes,
    question=question,
    check=_check,
    describe=_describe,
    options=("rounds", "shares", "sampling", "parties_per_round", "features_per_round"),
    plan=_plan,
    with_rows=_with_rows,
    warm=_warm,
)
