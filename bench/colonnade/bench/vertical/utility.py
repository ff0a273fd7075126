"""How good vertical jobs are at equal (epsilon, delta), and how that scales with rows.

Plans come from the planner. It is told what an organization could know: that columns of different
parties have little to do with each other, or about 0.3; for real tables nothing, so that it takes
its default. Radii, rounds and all else are its own. The seeds of made-up data were not used to
choose its rules. The real tables were seen while they were chosen: the radius and rounds of the
centralised reference were searched on them, in its favour, so they are no held-out test.
"""

import functools
import math
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from colonnade.bench.scratch import say
from colonnade.bench.vertical.methods import Case, problem_of, sent_bytes, the_same
from colonnade.bench.vertical.paper import paper
from colonnade.bench.vertical.tables import TABLES, load
from colonnade.methods.frank_wolfe.plan import recommend
from colonnade.methods.problem import Loss, Problem
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import make
from colonnade.simulate.evaluation.references import central_reference, nonprivate
from colonnade.simulate.inprocess.vertical import Data, fit, model_of, quality, run

EPSILON, DELTA = 1.0, 1e-6
FIRST_SEED = 7000
METHODS = ("nonprivate", "central", "ours", "no_sharing", "sketched_labels", "paper")


def utility(quick: bool, folder: Path | None) -> list[dict[str, object]]:
    """Return one row a case: medians over seeds of R2, or of the area under the ROC curve.

    ``folder`` holds the public tables; without it only made-up data is used.
    """
    seeds = range(FIRST_SEED, FIRST_SEED + (2 if quick else 5))
    rows: list[dict[str, object]] = []
    for case in _cases(quick, folder):
        say(f"utility: {case.name}")
        found: dict[str, list[float]] = {method: [] for method in METHODS}
        for seed in seeds:
            for method, value in _scores(case, seed, quick=quick):
                found[method].append(value)
        medians = {
            method: round(statistics.median(values), 3) if values else None
            for method, values in found.items()
        }
        rows.append({"case": case.name, "metric": case.metric, **medians})
    return rows


def _cases(quick: bool, folder: Path | None) -> Iterator[Case[Data]]:
    sizes = (100_000,) if quick else (100_000, 1_000_000)
    for n_rows in sizes:
        for correlation in (0.0, 0.3):
            if n_rows > 100_000 and correlation == 0.0:
                continue
            name = f"n={n_rows:.0e} correlation={correlation}".replace("e+0", "e")
            made = functools.partial(_made, n_rows, correlation)
            yield Case(name, Loss.SQUARED, made, correlation)
    for name, table in TABLES.items():
        if folder is not None and (name == "california" or not quick):
            held = load(folder, name)
            yield Case(name, table.loss, functools.partial(the_same, held))


def _made(n_rows: int, correlation: float, seed: int) -> Data:
    return make(n_rows, (15,) * 4, informative=6, correlation=correlation, seed=seed).data()


def _scores(case: Case[Data], seed: int, *, quick: bool) -> Iterator[tuple[str, float]]:
    """Yield the quality of every method on the data of one seed."""
    data, loss = case.data(seed), case.loss

    def planned(owner: str | None = None, shares: int | None = None) -> float:
        spec = recommend(_problem(case, data, owner), shares=shares).spec
        return quality(data, fit(data, spec, SeededNoise(seed), job=f"bench {seed}"), loss)

    made_up = case.correlation is not None  # anew for each seed
    if seed == FIRST_SEED or (made_up and not quick):  # otherwise it hardly varies
        yield "nonprivate", quality(data, nonprivate(data, loss), loss)
    units = units_down(rho_of(EPSILON, DELTA))
    reference = central_reference(data, loss=loss, rho_units=units, seed=seed)
    yield "central", quality(data, reference, loss)
    yield "ours", planned()
    yield "no_sharing", planned(shares=0)
    yield "sketched_labels", planned(owner="p0")
    yield "paper", _paper(data, loss, seed, quick=quick)


def _problem(case: Case[Data], data: Data, owner: str | None) -> Problem:
    units = units_down(rho_of(EPSILON, DELTA))
    return problem_of(data, units, case.loss, owner, correlation=case.correlation)


def _paper(data: Data, loss: Loss, seed: int, *, quick: bool) -> float:
    """Return the best that the paper's calibration does over rounds and radii."""
    fit_one = functools.partial(paper, data, epsilon=EPSILON, delta=DELTA, loss=loss, seed=seed)
    fits = (
        fit_one(radius=radius, rounds=rounds)
        for rounds in ((4,) if quick else (2, 4, 8))
        for radius in ((0.2,) if quick else (0.2, 0.8))
    )
    return max(quality(data, model, loss) for model in fits)


def scaling(quick: bool) -> dict[str, object]:
    """Return error and uplink against rows, with slopes fitted on logarithmic axes.

    Four parties with five columns each, correlation 0.3 (and 0, whose errors say what correlation
    between parties costs; and 0.3 with shared features all but free of noise, which says what their
    noise costs), plans as recommended. The error is the
    excess of the mean squared error over that of the model that made the label, in units of the
    label's variance; the payload is what was really sent.
    """
    powers = range(6, 11, 2) if quick else range(6, 13)
    sizes = [round(10 ** (power / 2)) for power in powers]
    errors, alone, free, payloads = [], [], [], []
    for n_rows in sizes:
        say(f"scaling: {n_rows} rows")
        seeds = range(FIRST_SEED, FIRST_SEED + (1 if quick else 5))
        trials = [_trial(n_rows, seed, 0.3) for seed in seeds]
        apart = [_trial(n_rows, seed, 0.0)[0] for seed in seeds]
        plain = [_trial(n_rows, seed, 0.3, sharing_free=True)[0] for seed in seeds]
        alone.append(round(statistics.median(apart), 4))
        free.append(round(statistics.median(plain), 4))
        errors.append(round(statistics.median(error for error, _ in trials), 4))
        payloads.append(round(statistics.median(payload for _, payload in trials)))
    return {
        "n": sizes,
        "error": errors,
        "error_independent": alone,
        "error_sharing_free": free,
        "payload_bytes": payloads,
        "error_slope": _slope(sizes, errors),
        "error_slope_independent": _slope(sizes, alone),
        "error_slope_sharing_free": _slope(sizes, free),
        "payload_slope": _slope(sizes, payloads),
        "paper_error_slope": round(-2.0 / 3.0, 3),
        "paper_payload_slope": round(2.0 / 3.0, 3),
    }


def _trial(
    n_rows: int, seed: int, correlation: float, *, sharing_free: bool = False
) -> tuple[float, int]:
    made = make(n_rows, (5,) * 4, informative=5, correlation=correlation, seed=seed)
    data = made.data()
    case = Case("", Loss.SQUARED, lambda _: data, correlation)
    spec = recommend(_problem(case, data, None)).spec
    if sharing_free:
        spec = replace(spec, share_units=spec.share_units * 10**4)
    state, members = run(data, spec, SeededNoise(seed), job=f"scaling {seed}")
    sent = sum(sent_bytes(members).values())
    best = quality(data, made.truth(), Loss.SQUARED)
    error = best - quality(data, model_of(spec, state), Loss.SQUARED)
    return max(error, 1e-4), sent  # luck can beat the truth by a hair on the rows at hand


def _slope(sizes: list[int], values: list[float] | list[int]) -> float:
    """Return the slope of the least-squares line through the logarithms."""
    logs = [math.log(value) for value in values]
    return round(float(np.polyfit(np.log(sizes), logs, 1)[0]), 3)
