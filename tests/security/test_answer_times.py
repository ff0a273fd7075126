"""What a coordinator chooses meets rows: how long that takes does not depend on the rows."""

import functools
import importlib
import math
import platform
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from support.steadiness import Unsteady, check_steady, machine_branches, optimised, subnormals

from colonnade.core import constant_time as steady
from colonnade.core.arrays import AnyArray, FloatArray, IntArray
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds
from colonnade.core.jit import njit
from colonnade.data import requantise as requantising
from colonnade.data.requantise import requantise
from colonnade.linear import ball, kernels
from colonnade.linear.losses import LOGISTIC, SQUARED, Loss
from colonnade.methods import bounds as quantiles
from colonnade.methods import column_moments as moments
from colonnade.methods.admm import kernels as admm
from colonnade.methods.admm import own_kernels, packing
from colonnade.methods.admm.choices import Variant
from colonnade.methods.admm.prox import ClientRows, factorise
from colonnade.methods.admm.spec import MAX_V, AdmmSpec
from colonnade.methods.frank_wolfe import residual
from colonnade.methods.frank_wolfe.residual import (
    MAX_CLIP,
    MAX_COEF,
    MAX_Q,
    WEIGHT_UNIT,
    TaskParameters,
)
from colonnade.methods.sealed import packing as sealed_packing
from colonnade.methods.sealed import ring as sealed_ring
from colonnade.methods.sealed import rows as sealed_rows
from colonnade.privacy import mechanisms
from colonnade.privacy.accounting import units_down
from colonnade.sketching import sparse as sketch

x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="reads a register of x86-64")


def ints(*shape: int, kind: type = np.int64, mapped: bool = False) -> AnyArray:
    """Return zeros; with ``mapped`` a part of larger rows that cannot be written, as of a table."""
    if not mapped:
        return np.zeros(shape, kind)
    part: AnyArray = np.zeros((*shape[:-1], shape[-1] + 3), kind)[..., 1:-2]
    part.setflags(write=False)
    return part


def column(n_rows: int = 9) -> AnyArray:
    return ints(n_rows, kind=np.int16, mapped=True)


@dataclass(frozen=True)
class Case:
    """A kernel, what it is called with, and which of its arrays hold nothing of the party's."""

    kernel: Any
    arguments: tuple[Any, ...]
    public: Collection[str] = ()


KEY, WORDS, SHORT = ints(2, kind=np.uint64), ints(8, kind=np.uint64), np.int16
HASH = ("key", "words", "lanes")  # which cell a row has follows from its number and a public seed
ASKED = ("clients", "v", "counts", "ranks", "places", "firsts")
F1, F2 = np.zeros(9), np.zeros((3, 9))

CASES = {
    "columns into sums": Case(ball._add, (column(), 3, ints(9))),
    "sums into the ball": Case(ball.into_ball, (ints(3, 9), ints(3, 20, kind=SHORT)[:, 2:11])),
    "rows into buckets": Case(
        sealed_rows._add_signed, (ints(3, 9, kind=SHORT, mapped=True), ints(9), 2, ints(3, 4))
    ),
    "buckets into steps": Case(sealed_rows._into_steps, (ints(3, 9), 16384, 40, 1700, ints(3, 9))),
    "rows into the ring": Case(sealed_ring._into_ring, (ints(2, 9), 5, ints(2, 9))),
    "products in the ring": Case(
        sealed_ring.add_products,
        (
            ints(2, 1, 4096, kind=np.uint64),
            ints(2, 4096, kind=np.uint64),
            ints(1, 4096, kind=np.uint64),
        ),
    ),
    "rows times a peer's coefficients": Case(
        sealed_ring._add_halves, (ints(3, 9), ints(2, 9), ints(3, 2), ints(3, 2))
    ),
    "a sealed body": Case(sealed_packing._pack, (ints(9), ints(9, kind=np.uint64))),
    "a column into a residual": Case(residual._add_column, (column(), 0.5, F1)),
    "residual": Case(residual._finish, (F1, ints(9), 0.5, 0.5, ints(9, kind=SHORT)), ("back",)),
    "scores": Case(
        kernels._score_rows, (ints(2, 9, kind=SHORT, mapped=True), column(), 0, 9, ints(2))
    ),
    "a sketch": Case(
        sketch._scatter,
        (KEY, WORDS, ints(16, kind=np.uint32), 0, ints(2, 9, kind=SHORT), ints(2, 1, 8)),
        HASH,
    ),
    "a quick sketch": Case(
        sketch._scatter_words, (KEY, WORDS, 0, ints(2, 9, kind=SHORT), ints(2, 1, 8)), HASH
    ),
    "a shared column": Case(moments._share, (column(), 0.1, 2.0, ints(9, kind=SHORT))),
    "counts for bounds": Case(
        quantiles._count_rows,
        (ints(2, 9, kind=np.int32, mapped=True), ints(2, 2, kind=np.int32), 0, 9, ints(2, 2)),
        ("thresholds",),
    ),
    "a job's own bounds": Case(
        requantising._requantise,
        (ints(9, kind=np.int32, mapped=True), *(0.5,) * 6, ints(9, kind=SHORT)),
    ),
    "weights of a choice": Case(mechanisms._weigh, (ints(9), 0.5, ints(18, kind=np.uint64))),
    "a choice": Case(mechanisms._pick, (ints(18, kind=np.uint64), np.uint64(1), np.uint64(1))),
    "a client's basis": Case(admm.orthogonal, (F2, np.zeros((3, 3)), F2)),
    "a client's squared loss": Case(admm.ridge, (F2, np.zeros(3), 1.0, np.zeros((9, 9)), F1)),
    "a client's step": Case(
        admm.displace,
        (True, ints(1), ints(1, 9), F2, F1, F1, *(ints(2),) * 4, 1.0, 1.0, 256, ints(1, 9)),
        ASKED,
    ),
    "a client's planned answer": Case(
        own_kernels.displace_own,
        (
            *(True, False, ints(1), ints(1, 9), F2, F1, F1, F2),
            *(*(ints(2),) * 4, 1.0, 1.0, 0.2, 1.0, 256, ints(1, 9)),
        ),
        ASKED,
    ),
    "a client's gradient": Case(
        own_kernels.descend,
        (True, ints(1), ints(1, 9), F2, F1, F1, *(ints(2),) * 4, 1.0, 1.0, 256, ints(1, 9)),
        ASKED,
    ),
    "a client's answer": Case(packing._pack, (ints(9), 3, 0.5, 7, ints(9, kind=np.uint8))),
}

# Compiled, and without any of the party's values: hashes, and what comes from coordinators.
WITHOUT_ROWS = {"hash_words", "_hash_cells", "_gather", "_unpack"}
# No job can ask for it: plain additions in a fixed order all the same.
UNUSED = {"_walsh_hadamard"}
# Runs in `party ingest`, before a party attaches: a command of its own people, whom no peer times.
AT_INGEST = {"_quantise"}
MODULES = (
    *(ball, residual, kernels, sketch, moments, quantiles, requantising, mechanisms, admm),
    *(own_kernels, packing, sealed_packing, sealed_ring, sealed_rows),
    *(steady, importlib.import_module("colonnade.sketching.dense")),
)


@functools.cache
def code_of(name: str) -> tuple[str, str]:
    return optimised(CASES[name].kernel, CASES[name].arguments)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_branch_address_or_slow_instruction_depends_on_rows(name: str) -> None:
    secrets = check_steady(*code_of(name), public=CASES[name].public)
    assert secrets > 10  # it has seen them


@pytest.mark.slow
def test_machine_code_has_no_branches_that_the_optimised_code_has_not() -> None:
    planted = optimised(_clipped, (ints(9), ints(9)))[1]
    usual, forbidden = machine_branches([*(code_of(name)[1] for name in CASES), planted])
    assert dict(zip(CASES, usual, strict=False)) == dict(zip(CASES, forbidden, strict=False))
    if platform.machine() == "x86_64":
        assert usual[-1] > forbidden[-1]  # this is how such a branch would show


def test_every_kernel_that_a_party_runs_for_a_coordinator_is_looked_at() -> None:
    found = {
        each.py_func
        for module in MODULES
        for each in vars(module).values()
        if isinstance(each, Dispatcher) and each.py_func.__module__ == module.__name__
    }
    looked = set[Callable[..., Any]]()
    for case in CASES.values():
        looked |= {case.kernel.py_func, *_called(case.kernel.py_func)}
    others = {each.__name__ for each in found - looked}
    assert others == WITHOUT_ROWS | UNUSED | AT_INGEST


def _called(function: Callable[..., Any]) -> set[Callable[..., Any]]:
    """Return the kernels that a function calls, and that those call."""
    called = set[Callable[..., Any]]()
    for name in function.__code__.co_names:
        each = function.__globals__.get(name)
        if isinstance(each, Dispatcher) and name not in WITHOUT_ROWS:
            called |= {each.py_func, *_called(each.py_func)}
    return called


# -- planted faults ------------------------------------------------------------------------------


@njit
def _inside_or_not(x: FloatArray, out: FloatArray) -> None:
    for i in range(x.size):
        if x[i] > 1.0:
            out[i] = x[i] * x[i] + math.sin(1.0)


@njit
def _as_often_as_needed(x: IntArray, out: IntArray) -> None:
    for i in range(x.size):
        while x[i] > 100:
            x[i] -= out[i]


@njit
def _looked_up(x: IntArray, out: IntArray) -> None:
    for i in range(x.size):
        out[i] = out[x[i] & 3]


@njit
def _quotient(x: IntArray, out: IntArray) -> None:
    for i in range(x.size):
        out[i] = 1000000007 // (x[i] | 1)


@njit
def _exponential(x: FloatArray, out: FloatArray) -> None:
    for i in range(x.size):
        out[i] = math.exp(x[i])


@njit
def _root(x: FloatArray, out: FloatArray) -> None:
    for i in range(x.size):
        out[i] = math.sqrt(x[i])


@njit
def _helped(x: IntArray, out: IntArray) -> None:
    _looked_up(x, out)


@njit
def _clipped(x: IntArray, out: IntArray) -> None:
    for i in range(x.size):  # integers, and each sum needs the one before: no vectors
        out[i] = min(max(x[i] + out[i - 1], -5), 5)


@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        (_inside_or_not, "a branch"),
        (_as_often_as_needed, "a branch"),
        (_looked_up, "an address"),
        (_helped, "an address"),
        (_quotient, "a division"),
        (_exponential, "a call"),
        (_root, "a call"),
    ],
)
def test_a_planted_fault_is_found(kernel: Any, what: str) -> None:
    floats = kernel in (_inside_or_not, _exponential, _root)
    pair = (np.zeros(9), np.zeros(9)) if floats else (ints(9), ints(9))
    name, code = optimised(kernel, pair)
    with pytest.raises(Unsteady, match=what):
        check_steady(name, code)
    if kernel is _looked_up:
        check_steady(name, code, public=("x",))  # of public numbers it would be none


# -- subnormal numbers ---------------------------------------------------------------------------


@x86
def test_a_subnormal_number_is_noticed() -> None:
    out = np.empty(1)
    assert not subnormals(lambda: residual._add_column(np.ones(1, SHORT), 1e-300, out))
    assert subnormals(lambda: residual._add_column(np.ones(1, SHORT), 1e-310, out))


VALUES = np.array([-GRID, -GRID + 1, -1, 0, 1, GRID - 1, GRID], np.int16)


@x86
@pytest.mark.parametrize("clip", [1, 2**20, MAX_CLIP])
@pytest.mark.parametrize("weight", [1, WEIGHT_UNIT])
def test_no_task_makes_a_residual_subnormal(clip: int, weight: int) -> None:
    small = sketch.SparseSketch(bytes(32), VALUES.size, 4)
    for coef in (0, 1, -1, 12345, MAX_COEF):
        for entry in (1, -7, MAX_Q):
            q, offset = np.array([entry, 0, -entry, 1]), min(coef, 3)
            public = TaskParameters(np.array([coef]), q, weight=weight, clip=clip, offset=offset)
            columns = VALUES.reshape(1, -1)
            work = lambda p=public, c=columns: residual.residual(c, VALUES, p, small)  # noqa: E731
            assert not subnormals(work)


ENDS = (0.0, 1e-120, -1e-120, 1e-90, 3e-90, -1.0, 1.0, 1.0 + 2**-52, -1e120, 1e120)


@x86
def test_no_bounds_of_a_proposal_make_a_column_subnormal() -> None:
    fine = np.array([-FINE_GRID, -FINE_GRID + 1, -1, 0, 1, 2, FINE_GRID], np.int32)
    made = []
    for low in ENDS:
        for high in ENDS:
            try:
                made.append(Bounds(low, high))
            except ValueError:
                continue
    assert len(made) > 30
    for declared in made:
        for tight in made:
            work = lambda d=declared, t=tight: requantise(fine, declared=d, tight=t)  # noqa: E731
            assert not subnormals(work), (declared, tight)


@x86
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
@pytest.mark.parametrize("gamma", [2.0**-40, 1.0, 2.0**40])
@pytest.mark.parametrize("lipschitz", [2.0**-40, 2.0**40])
@pytest.mark.parametrize("variant", Variant)
def test_no_task_makes_a_client_compute_with_subnormals(
    loss: Loss, gamma: float, lipschitz: float, variant: Variant
) -> None:
    draw = np.random.default_rng(1)
    plan: dict[str, Any] = {}
    if variant is Variant.PLANNED:
        plan = {"radii": (1024,), "intercept_rounds": 1, "intercept_units": 2**40}
        plan["client_rows"] = 5
    spec = AdmmSpec(
        n_clients=8,
        n_features=4,
        rounds=2,
        sampled=8,
        release_units=units_down(1.0),
        gamma=gamma,
        lipschitz=lipschitz,
        loss=loss,
        intercept=True,
        variant=variant,
        **plan,
    )
    shapes = (3, 5, 9)
    tables: list[AnyArray] = [np.zeros((4, n)) for n in shapes] + [
        np.triu(np.ones((4, n))) for n in shapes
    ]
    tables += [draw.integers(-GRID, GRID + 1, (4, n)) for n in shapes]
    clients = [
        ClientRows(table.astype(SHORT), draw.choice(VALUES, table.shape[1])) for table in tables
    ]
    for client in clients:
        assert not subnormals(lambda c=client: factorise([c], spec))  # type: ignore[misc]
        problems = factorise([client], spec)
        for size in (0, 1, 2**26, MAX_V):
            for round_ in (1, 2):
                v = draw.integers(-size, size + 1, (1, spec.dim))
                v = np.append(v, [[1 + size]], axis=1)[:, : spec.point_size(round_)]
                assert not subnormals(
                    lambda p=problems, v=v, r=round_: p.displacements(  # type: ignore[misc]
                        np.zeros(1, np.int64), v, round_=r
                    )
                )
