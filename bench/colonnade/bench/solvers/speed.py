"""Time of DP-CD against the same loop in C, and growth in rows and columns.

The C program is compiled in the run with ``-O3 -march=native`` and what vectors need. It is the
same loop: it reads the same integers, moves the margins in the same pass, has the same sigmoid and
sums the same clipped integers. Both are given exact noise, drawn in the time that is measured.

Both are single-threaded and timed by what their thread was given of the processor. They run by
turns, and the ratio is the median over the pairs: on a busy machine the least time of either is a
matter of luck, while what slows one run of a pair mostly slows the other.
"""

import ctypes
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.bench.scratch import say
from colonnade.bench.solvers.cases import SolverCase, load_case
from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import SQUARED
from colonnade.linear.penalties import lasso
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.sampling import OsNoise
from colonnade.solvers.algorithms.coordinate import STEP, CoordinateDescent
from colonnade.solvers.budgets import BudgetPlan
from colonnade.solvers.designs.column_kernels import TOP
from colonnade.solvers.designs.dense import DenseDesign
from colonnade.solvers.iteration import Direct
from colonnade.solvers.problem import plain
from colonnade.solvers.solve import make_plan, solve

PASSES = 50
SIZES = ((10**4, 10), (10**5, 10), (10**5, 100), (10**6, 10), (10**6, 100))
_SOURCE = r"""
#include <math.h>
#include <stdint.h>
#include <stddef.h>

static inline int64_t cut(double x, double top) {
    double y = x < top ? x : top;
    y = y > -top ? y : -top;
    return (int64_t)(int32_t)y;
}

/* The same Taylor sum as ours: libm's exp would not become vectors. */
static inline double sigmoid(double x) {
    double below = -x < 36.0 ? -x : 36.0;
    double h = (below > -36.0 ? below : -36.0) / 128.0;
    double e = 1.0 / 40320 + h * (1.0 / 362880);
    e = 1.0 / 24 + h * (1.0 / 120 + h * (1.0 / 720 + h * (1.0 / 5040 + h * e)));
    e = 1.0 + h * (1.0 + h * (1.0 / 2 + h * (1.0 / 6 + h * e)));
    e *= e; e *= e; e *= e; e *= e; e *= e; e *= e; e *= e;
    return 1.0 / (1.0 + e);
}

void descend(int logistic, const int16_t *restrict columns, const double *restrict label,
             ptrdiff_t n, ptrdiff_t p, ptrdiff_t steps, const double *units, const double *clips,
             const double *lengths, double l1, double l2, double top, const int64_t *noise,
             double *restrict margins, double *coef) {
    const int16_t *before = columns;
    double amount = 0.0;
    for (ptrdiff_t k = 0; k < steps; k++) {
        ptrdiff_t j = k % p;
        const int16_t *column = columns + j * n;
        double factor = units[j] / clips[j] * top;
        int64_t total = 0;
        if (logistic)
            for (ptrdiff_t i = 0; i < n; i++) {
                margins[i] += amount * before[i];
                total += cut(-label[i] * sigmoid(-label[i] * margins[i]) * (factor * column[i]),
                             top);
            }
        else
            for (ptrdiff_t i = 0; i < n; i++) {
                margins[i] += amount * before[i];
                total += cut((margins[i] - label[i]) * (factor * column[i]), top);
            }
        double slope = (double)(total + noise[k]) * (clips[j] / top) / (double)n;
        double point = coef[j] - lengths[j] * slope;
        double size = fmax(fabs(point) - lengths[j] * l1, 0.0) / (1.0 + lengths[j] * l2);
        double change = copysign(size, point) - coef[j];
        coef[j] += change;
        amount = change * units[j];
        before = column;
    }
}
"""


@dataclass(frozen=True, slots=True)
class Reference:
    """The C loop, compiled."""

    library: ctypes.CDLL

    def run(self, case: SolverCase, solver: CoordinateDescent, plan: BudgetPlan) -> FloatArray:
        """Return the model of one run."""
        n_rows, n_features = case.design.shape
        mechanism = plan.mechanism(STEP)
        if not isinstance(mechanism, DiscreteGaussian):
            raise TypeError("coordinate descent adds Gaussian noise")
        steps = solver.steps(n_rows, n_features)
        noise = OsNoise().discrete_gaussian(mechanism.sigma2, steps)
        squares = np.array(case.squares)
        lengths = solver.step / (case.problem.loss.curvature * squares)
        coef = np.zeros(n_features)
        self.library.descend(
            int(case.problem.loss.classifies),
            _at(case.design.columns),
            _at(case.y),
            ctypes.c_ssize_t(n_rows),
            ctypes.c_ssize_t(n_features),
            ctypes.c_ssize_t(steps),
            _at(case.design.units),
            _at(clips := solver.clip * np.sqrt(squares)),
            _at(lengths),
            ctypes.c_double(case.problem.elastic.l1),
            ctypes.c_double(case.problem.elastic.l2),
            ctypes.c_double(TOP),
            _at(noise),
            _at(margins := np.zeros(n_rows)),
            _at(coef),
        )
        del clips, margins  # kept alive until here
        return coef


def _at(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def compile_reference(folder: Path) -> Reference | None:
    """Compile the C loop in ``folder``; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    source, library = folder / "reference.c", folder / "reference.so"
    source.write_text(_SOURCE, encoding="utf-8")
    # Without the second line gcc leaves the logistic loop scalar, three times slower. With fused
    # multiply-adds it would be 1.3 to 1.6 times as fast and no longer the arithmetic of the
    # plain-Python twins.
    flags = ["-O3", "-march=native", "-ffp-contract=off"]
    flags += ["-fno-math-errno", "-fno-trapping-math"]
    command = [compiler, *flags, "-fPIC", "-shared", str(source)]
    subprocess.run([*command, "-o", str(library), "-lm"], check=True, capture_output=True)
    return Reference(ctypes.CDLL(str(library)))


def measure_speed(tables: Path | None, folder: Path, *, rounds: int) -> list[dict[str, Any]]:
    """Return seconds for 50 passes, and how many times the C loop's they are."""
    reference = compile_reference(folder)
    rows = []
    for name in ("california standardised", "electricity standardised"):
        say(f"speed on {name}")
        case = load_case(name, tables)
        case = SolverCase(
            **{slot: getattr(case, slot) for slot in case.__slots__} | {"y": case.y.copy()}
        )
        solver = CoordinateDescent(passes=PASSES, clip=1.0, squares=case.squares)
        plan = make_plan(solver, case.design.shape, epsilon=case.epsilon, delta=case.delta)

        def ours(
            case: SolverCase = case, solver: CoordinateDescent = solver, plan: BudgetPlan = plan
        ) -> FloatArray:
            release = Direct(OsNoise())
            return solve(case.problem, case.design, case.y, solver, plan=plan, release=release)

        def theirs(
            case: SolverCase = case, solver: CoordinateDescent = solver, plan: BudgetPlan = plan
        ) -> FloatArray:
            return reference.run(case, solver, plan) if reference else np.zeros(0)

        ours()
        pairs = _alternate(ours, theirs, rounds=rounds)
        rows.append(
            {
                "data": name,
                "solver": "cd",
                "seconds_50_passes": min(mine for mine, _ in pairs),
                "reference_seconds": min(their for _, their in pairs) if reference else None,
                "vs_reference": median_ratio(pairs) if reference else None,
            }
        )
    return rows


def _alternate(
    ours: Callable[[], object], theirs: Callable[[], object], *, rounds: int
) -> list[tuple[float, float]]:
    """Return the times of neighbouring runs in pairs; who goes first takes turns too."""
    pairs = []
    for turn in range(rounds):
        if turn % 2 == 0:
            mine, their = _seconds(ours), _seconds(theirs)
        else:
            their, mine = _seconds(theirs), _seconds(ours)
        pairs.append((mine, their))
    return pairs


def _seconds(run: Callable[[], object]) -> float:
    begin = time.thread_time()
    run()
    return time.thread_time() - begin


def median_ratio(pairs: list[tuple[float, float]]) -> float:
    """Return the median of the first time over the second."""
    return statistics.median(mine / their for mine, their in pairs)


def measure_growth(sizes: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
    """Return the time of a pass of the squared loss by rows and columns."""
    rows = []
    for n_rows, n_features in sizes:
        say(f"growth, {n_rows} rows, {n_features} columns")
        draw = np.random.default_rng(0)
        columns = draw.integers(-GRID, GRID + 1, (n_features, n_rows), dtype=np.int16)
        design = DenseDesign(columns, np.full(n_features, 1.0 / GRID))
        label = draw.uniform(-1.0, 1.0, n_rows)
        solver = CoordinateDescent(passes=3, clip=1.0, squares="bounds")
        plan = make_plan(solver, design.shape, epsilon=1.0, delta=1e-6)
        problem = plain(SQUARED, lasso(0.01), n_features)
        seconds = float("inf")
        for _ in range(5):  # the first loads compiled code
            begin = time.perf_counter()
            solve(problem, design, label, solver, plan=plan, release=Direct(OsNoise()))
            seconds = min(seconds, time.perf_counter() - begin)
        rows.append(
            {
                "n": n_rows,
                "p": n_features,
                "seconds_per_pass": seconds / 3,
                "ns_per_value": 1e9 * seconds / 3 / (n_rows * n_features),
            }
        )
    return rows
