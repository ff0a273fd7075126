"""Sealed jobs beside sketched ones and the centralised references, with the label at one party.

Bounds are bought and charged, all else is the planner's, and scores are of rows that nobody fitted:
20,000 more made-up rows, or a fifth of a public table, drawn anew for each seed. ``central`` is the
better of two private methods with all columns in one place at the same price: a noisy Gram matrix
(the solver ``gram``), and Frank-Wolfe. Jobs run in one process, by the steps of both sides that
processes run, which is bit for bit the same model. Payloads are those of the party that sends most.
"""

import functools
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.bench.scratch import say
from colonnade.bench.vertical.methods import (
    DELTA,
    EPSILON,
    SHAPES,
    Case,
    Raw,
    bounds_for,
    made_table,
    on_grid,
    problem_of,
    public_table,
    sent_bytes,
    the_same,
)
from colonnade.bench.vertical.tables import TABLES
from colonnade.methods.base import payload
from colonnade.methods.moments import plan as moments
from colonnade.methods.problem import Loss
from colonnade.methods.sealed import plan as sealed
from colonnade.methods.sealed.ring import seal_ring
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.evaluation.references import (
    central_reference,
    frank_wolfe_reference,
    nonprivate,
)
from colonnade.simulate.inprocess import moments as moments_inprocess
from colonnade.simulate.inprocess import sealed as sealed_inprocess
from colonnade.simulate.inprocess.vertical import Data, ScaledModel, quality

FIRST_SEED = 20_000
_HELD_OUT = 20_000
_HELD_OUT_PART = 0.2


@dataclass(frozen=True, slots=True)
class SealedScore:
    """One seed's figures."""

    scores: dict[str, float]  # nonprivate, both central ones, sketched, sealed
    payload_bytes: int
    predicted_bytes: int
    seconds: float
    seconds_sketched: float


def sealed_rows(quick: bool, folder: Path | None) -> list[dict[str, object]]:
    """Return one row a case: medians over seeds.

    ``folder`` holds the public tables; without it only made-up data is used.
    """
    seal_ring()  # the library is loaded once, and no job's time has it
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if quick else 7))
    rows = []
    for case in _cases(quick, folder):
        say(f"sealed: {case.name}")
        rows.append(_row(case, [_scored(case, seed) for seed in seeds]))
    return rows


def _cases(quick: bool, folder: Path | None) -> Iterator[Case[Raw]]:
    sizes = ((40, 100_000),) if quick else ((40, 100_000), (400, 100_000), (40, 20_000))
    for features, rows in sizes:
        for shape in ("equicorrelated",) if quick else SHAPES:
            made = functools.partial(made_table, shape, features, rows=rows + _HELD_OUT)
            few = "" if rows == 100_000 else f" n={rows:.0e}".replace("e+0", "e")
            yield Case(f"{shape} d={features}{few}", Loss.SQUARED, made)
    for name, table in TABLES.items():
        if folder is not None and not quick:
            yield Case(name, table.loss, functools.partial(the_same, public_table(folder, name)))


def _row(case: Case[Raw], found: Sequence[SealedScore]) -> dict[str, object]:
    medians = {
        name: statistics.median(each.scores[name] for each in found) for name in found[0].scores
    }
    central = max(medians["central_frank_wolfe"], medians["central_gram"])
    return {
        "case": case.name,
        "metric": case.metric,
        "seeds": len(found),
        "nonprivate": round(medians["nonprivate"], 3),
        "central": round(central, 3),
        "sketched": round(medians["sketched"], 3),
        "sealed": round(medians["sealed"], 3),
        "sealed_worst": round(min(each.scores["sealed"] for each in found), 3),
        "payload_mb": _mb(max(each.payload_bytes for each in found)),
        "predicted_mb": _mb(max(each.predicted_bytes for each in found)),
        "seconds": round(statistics.median(each.seconds for each in found), 2),
        "seconds_sketched": round(statistics.median(each.seconds_sketched for each in found), 2),
    }


def _mb(size: int) -> float:
    return round(size / 1e6, 3)


def _divided(case: Case[Raw], seed: int) -> tuple[Raw, Raw]:
    """Return the rows to fit and the rows held out, by the seed."""
    raw = case.data(seed)
    count = raw.label.size
    held = round(_HELD_OUT_PART * count) if case.name in TABLES else _HELD_OUT
    order = np.random.default_rng([seed, 16]).permutation(count)
    return raw.part(order[held:]), raw.part(order[:held])


def _scored(case: Case[Raw], seed: int) -> SealedScore:
    fitted, held = _divided(case, seed)
    total = units_down(rho_of(EPSILON, DELTA))
    bounds, label, paid = bounds_for(
        fitted, total, SeededNoise(seed), label=case.loss is Loss.SQUARED
    )
    data, other = on_grid(fitted, bounds, label), on_grid(held, bounds, label)
    units = total - paid
    scores = {
        name: quality(other, model, case.loss)
        for name, model in _references(case, data, units, seed)
    }
    problem = problem_of(data, units, case.loss, "p0")
    begun = time.perf_counter()
    sketched = moments_inprocess.fit(
        data, moments.recommend(problem).spec, SeededNoise(seed), job=f"sealed {seed}"
    )
    seconds_sketched = time.perf_counter() - begun
    scores["sketched"] = quality(other, sketched, case.loss)
    begun = time.perf_counter()
    spec = sealed.recommend(problem).spec
    state, members = sealed_inprocess.run(data, spec, SeededNoise(seed), job=f"sealed {seed}")
    model = sealed_inprocess.model_of(spec, state)
    seconds = time.perf_counter() - begun
    scores["sealed"] = quality(other, model, case.loss)
    sent = sent_bytes(members)
    most = max(sent, key=lambda name: sent[name])
    predicted = sum(payload(spec, most).values())
    return SealedScore(scores, sent[most], predicted, seconds, seconds_sketched)


def _references(
    case: Case[Raw], data: Data, units: int, seed: int
) -> Iterator[tuple[str, ScaledModel]]:
    """Fit without privacy, and in two private ways with all columns in one place."""
    yield "nonprivate", nonprivate(data, case.loss, seed=seed)
    for name, fit in (("gram", central_reference), ("frank_wolfe", frank_wolfe_reference)):
        yield f"central_{name}", fit(data, loss=case.loss, rho_units=units, seed=seed)
