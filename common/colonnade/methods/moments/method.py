"""Moments as a registered method."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from colonnade.linear.ball import Projection, project, triangle
from colonnade.methods.base import Member, Method, MethodPlan, Unit
from colonnade.methods.frank_wolfe.method import FRANK_WOLFE
from colonnade.methods.groups import check_same_groups
from colonnade.methods.moments.codec import spec_from_bytes, spec_to_bytes
from colonnade.methods.moments.expected import expected_idle
from colonnade.methods.moments.plan import recommend
from colonnade.methods.moments.rows import inner_products
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.problem import Problem
from colonnade.sketching.sparse import SparseSketch

_ROWS = 256
# What is summed exactly, and what is sketched, for the scaling of prices with the rows.
_SUMMED = ("mean_units", "screen_units", "gram_units", "marginal_units", "cross_units")
_SKETCHED = ("share_units", "label_units")


def _plan(problem: Problem, options: Any) -> MethodPlan[MomentsSpec]:
    return recommend(
        problem,
        directions=options.directions,
        keep=options.keep_features,
        sketch_dim=options.sketch_dim,
        radius=options.radius,
    )


def _check(spec: MomentsSpec, members: Sequence[Member]) -> None:
    check_same_groups((each.groups for each in spec.parts), (each.groups for each in members))


def _describe(spec: MomentsSpec, party: str) -> dict[str, Any]:
    part = spec.part(party)
    directions = spec.n_directions(part) if spec.shares() else 0
    found: dict[str, Any] = {"kept_features": spec.kept(part), "directions": directions}
    if in_common := spec.in_common(party):
        found["people_in_common"] = in_common
    return found


def _with_rows(spec: MomentsSpec, rows: int) -> MomentsSpec:
    ratio = spec.n_rows / rows
    prices: dict[str, Any] = {name: int(getattr(spec, name) * ratio**2) for name in _SUMMED}
    prices |= {name: int(getattr(spec, name) * ratio) for name in _SKETCHED}
    sketch_dim = min(spec.sketch_dim, 1 << (rows.bit_length() - 1))
    return replace(spec, n_rows=rows, sketch_dim=sketch_dim, **prices)


def _warm() -> None:
    FRANK_WOLFE.warm()  # screening chooses as Frank-Wolfe does
    features = np.zeros((2, _ROWS), np.int16)
    features.setflags(write=False)  # as mapped tables are: other arrays would load other code
    projection = Projection(np.ones((2, 3), np.int64), np.zeros(2, np.int64))
    rows = project(features, features[0], projection)
    triangle(rows)
    inner_products(rows, np.zeros((2, 16), np.int64), SparseSketch(bytes(32), _ROWS, 16, 1))


MOMENTS: Method[MomentsSpec] = Method(
    kind=MomentsSpec.kind,
    unit=Unit.RECORD,
    encode=spec_to_bytes,
    decode=spec_from_bytes,
    check=_check,
    describe=_describe,
    options=("directions", "keep_features"),
    plan=_plan,
    with_rows=_with_rows,
    idle=expected_idle,
    warm=_warm,
    section="moments",
)
