"""Sealed products as a registered method: experimental, and only where policies grant it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from colonnade.methods.base import Member, Method, MethodPlan, Unit
from colonnade.methods.groups import check_same_groups
from colonnade.methods.moments.method import MOMENTS
from colonnade.methods.problem import Problem
from colonnade.methods.sealed.claims import PROMISE
from colonnade.methods.sealed.codec import spec_from_bytes, spec_to_bytes
from colonnade.methods.sealed.plan import recommend
from colonnade.methods.sealed.products import Prices
from colonnade.methods.sealed.ring import DEGREE, available, dot, seal_ring, times
from colonnade.methods.sealed.rows import RowScale
from colonnade.methods.sealed.spec import SealedSpec

_ROWS = 64


def _plan(problem: Problem, options: Any) -> MethodPlan[SealedSpec]:
    return recommend(
        problem, buckets=options.buckets, keep=options.keep_features, radius=options.radius
    )


def _check(spec: SealedSpec, members: Sequence[Member]) -> None:
    check_same_groups((each.groups for each in spec.parts), (each.groups for each in members))


def _describe(spec: SealedSpec, party: str) -> dict[str, Any]:
    part = spec.part(party)
    return {
        "experimental": True,
        "promise": PROMISE,
        "peers": list(spec.peers(part)),
        "sealed_columns": spec.n_sealed(part),
        "kept_features": spec.kept(part),
    }


def _with_rows(spec: SealedSpec, rows: int) -> SealedSpec:
    """Scale prices of sums with the square of the rows, and buckets with the rows."""
    ratio2 = (spec.n_rows / rows) ** 2
    prices = tuple(
        Prices(*(int(units * ratio2) for units in (each.gram, each.cross, each.wide, each.label)))
        for each in spec.prices
    )
    return replace(
        spec,
        n_rows=rows,
        mean_units=int(spec.mean_units * ratio2),
        prices=prices,
        buckets=max(1, min(spec.buckets, spec.buckets * rows // spec.n_rows)),
        overlap=tuple(people * rows // spec.n_rows for people in spec.overlap),
    )


def _warm() -> None:
    MOMENTS.warm()  # rows and Gram matrices are those of moments
    RowScale(_ROWS, _ROWS // 2, 2, 1000, 10).steps(np.zeros((2, _ROWS), np.int16), bytes(32))
    nothing = np.zeros((1, DEGREE), np.int64)
    dot(nothing, nothing)
    if available():
        times(seal_ring(), nothing.view(np.uint64), nothing[0])


SEALED_METHOD: Method[SealedSpec] = Method(
    kind=SealedSpec.kind,
    unit=Unit.RECORD,
    encode=spec_to_bytes,
    decode=spec_from_bytes,
    check=_check,
    describe=_describe,
    options=("buckets", "keep_features"),
    plan=_plan,
    with_rows=_with_rows,
    warm=_warm,
    section="sealed",
)
