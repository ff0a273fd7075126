"""Sketches: fixed norms, linearity, accuracy, and a definition that does not move."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.sketching import sparse as sketches
from colonnade.sketching.dense import HadamardSketch
from colonnade.sketching.sparse import Sketch, SparseSketch

N_ROWS = 1000


def table(rows: int = N_ROWS, columns: int = 3, seed: int = 0) -> Int16Array:
    return np.random.default_rng(seed).integers(-GRID, GRID + 1, (columns, rows), dtype=np.int16)


def dense(sketch: Sketch, rows: int = N_ROWS) -> IntArray:
    """Return the matrix, one unit column at a time."""
    return sketch.apply(np.eye(rows, dtype=np.int16)).T


ALL: list[Sketch] = [
    SparseSketch(b"s", N_ROWS, 64, 1),
    SparseSketch(b"s", N_ROWS, 64, 2),
    SparseSketch(b"s", N_ROWS, 64, 4),
    SparseSketch(b"s", N_ROWS, 100, 1),
    SparseSketch(b"s", N_ROWS, 300, 4),
    SparseSketch(b"s", N_ROWS, 2**16, 1),
    HadamardSketch(b"s", N_ROWS, 64),
    HadamardSketch(b"s", N_ROWS, 1024),
]


@pytest.mark.slow
@pytest.mark.parametrize("sketch", ALL, ids=repr)
def test_every_column_has_the_stated_norm(sketch: Sketch) -> None:
    units = np.eye(N_ROWS, dtype=np.int16)[:: max(1, sketch.dim // 2**13)]  # wide ones: some
    norms = (sketch.apply(units) ** 2).sum(axis=1)
    assert set(norms.tolist()) == {sketch.column_norm2}


@settings(max_examples=60, deadline=None)
@given(seed=st.binary(max_size=40), band=st.integers(1, 70), entries=st.sampled_from([1, 2, 4]))
def test_no_seed_moves_a_sparse_column_norm(seed: bytes, band: int, entries: int) -> None:
    matrix = dense(SparseSketch(seed, 60, band * entries, entries), 60)
    assert set((matrix**2).sum(axis=0).tolist()) == {entries}
    # one entry in each band, so that two never meet
    filled = (matrix.reshape(entries, band, 60) != 0).sum(axis=1)
    assert filled.tolist() == np.ones((entries, 60), int).tolist()


@pytest.mark.parametrize("sketch", ALL, ids=repr)
def test_replacing_one_row_moves_the_sketch_by_no_more_than_the_sensitivity(sketch: Sketch) -> None:
    before = table(columns=1)
    worst = 0
    for row in range(0, N_ROWS, 37):
        low, high = before.copy(), before.copy()
        low[0, row], high[0, row] = -GRID, GRID
        moved = sketch.apply(high) - sketch.apply(low)
        worst = max(worst, int((moved**2).sum()))
    assert worst == (2 * GRID) ** 2 * sketch.column_norm2  # attained, never exceeded


@pytest.mark.parametrize("sketch", ALL, ids=repr)
@pytest.mark.parametrize("cut", [0, 1, 333, 999, 1000])
def test_sketches_of_row_ranges_add_up(sketch: Sketch, cut: int) -> None:
    columns = table()
    parts = sketch.apply(columns[:, :cut]) + sketch.apply(columns[:, cut:], start=cut)
    assert parts.tolist() == sketch.apply(columns).tolist()


@pytest.mark.parametrize("sketch", ALL, ids=repr)
def test_transpose_is_the_transpose(sketch: Sketch) -> None:
    q = np.random.default_rng(5).integers(-(10**6), 10**6, sketch.dim)
    back = sketch.transpose(q)
    columns = table().astype(np.int64)
    assert (columns @ back).tolist() == (sketch.apply(table()) @ q).tolist()
    assert sketch.transpose(q, start=17, stop=400).tolist() == back[17:400].tolist()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_a_sparse_sketch(threads: int) -> None:
    columns, sketch = table(rows=40_000), SparseSketch(b"t", 40_000, 256, 2)
    many = sketch.apply(columns, threads=threads)
    assert many.tolist() == sketch.apply(columns, threads=1).tolist()


@pytest.mark.parametrize(("dim", "entries"), [(256, 1), (256, 4), (200, 1), (200, 2)])
def test_inner_products_survive_with_the_known_error(dim: int, entries: int) -> None:
    # Var <Ja, Jb> / s is at most (1 + <a,b>**2) / m for unit vectors, about 1/m here; over 400
    # seeds the root mean square is within 4 standard errors (1/sqrt(800) each) of 1/sqrt(m).
    draw = np.random.default_rng(11)
    pair = draw.normal(size=(2, 2000))
    pair = np.rint(pair / np.linalg.norm(pair, axis=1, keepdims=True) * 2**18).astype(np.int16)
    norms = np.linalg.norm(pair.astype(float), axis=1).prod()
    truth = float(pair[0].astype(float) @ pair[1]) / norms
    errors = []
    for seed in range(400):
        a, b = SparseSketch(b"%d" % seed, 2000, dim, entries).apply(pair)
        errors.append(float(a @ b) / entries / norms - truth)
    rms = float(np.sqrt(np.mean(np.square(errors))))
    assert rms == pytest.approx(dim**-0.5, rel=4 / np.sqrt(800))
    assert abs(np.mean(errors)) < 4 * rms / np.sqrt(400)


def test_buckets_and_signs_are_even() -> None:
    # 64,000 rows into 64 buckets and two signs: chi-square with 127 degrees of freedom has mean
    # 127 and deviation 16; 5 deviations allow for the seed.
    counts = np.zeros((2, 64))
    ones = np.ones((1, 64_000), np.int16)
    sketch = SparseSketch(b"even", 64_000, 64)
    words, lanes = sketch._scratch()
    cells = np.zeros((1, 1, 128), np.int64)
    sketches._scatter(sketch._words, words, lanes, 0, ones, cells)
    counts += cells[0, 0].reshape(64, 2).T
    chi2 = ((counts - 500) ** 2 / 500).sum()
    assert chi2 < 127 + 5 * 16


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 4095, 4096, 4097, 20_003])
def test_the_fast_kernel_equals_the_general_one(rows: int) -> None:
    sketch, columns = SparseSketch(b"fast", 30_000, 128), table(rows=rows)
    for row in (0, 4, 8192):
        fast, general = (np.zeros((3, 1, 256), np.int64) for _ in range(2))
        words, lanes = sketch._scratch()
        sketches._scatter_words(sketch._words, words, row, columns, fast)
        sketches._scatter(sketch._words, words, lanes, row, columns, general)
        assert fast.tolist() == general.tolist()


def test_a_hadamard_sketch_of_full_dimension_loses_nothing() -> None:
    sketch = HadamardSketch(b"full", N_ROWS, 1024)
    columns = table()
    back = sketch.transpose(sketch.apply(columns)[1])
    assert back.tolist() == (1024 * columns[1].astype(np.int64)).tolist()


def test_the_definition_of_the_sketches_does_not_move() -> None:
    # Parties of different versions must agree on J: these digests are part of the wire format.
    digests = []
    for sketch in (
        SparseSketch(b"golden", 200, 64, 1),
        SparseSketch(b"golden", 200, 64, 4),
        SparseSketch(b"golden", 200, 100, 1),
        HadamardSketch(b"golden", 200, 64),
    ):
        matrix = np.ascontiguousarray(dense(sketch, 200)).astype("<i8")
        digests.append(hashlib.sha256(matrix.tobytes()).hexdigest()[:16])
    assert digests == [
        "d88a004f029ae72b",
        "29c9e3cb4fae8bde",
        "453795bef6aa5ad3",
        "154c35bc55f3d2a3",
    ]


def test_different_seeds_give_different_sketches() -> None:
    one, two = (dense(SparseSketch(seed, 200, 64), 200) for seed in (b"a", b"b"))
    agree = (one == two).all(axis=0).mean()
    assert agree < 0.1  # by chance 1/128


def test_the_hash_kernel_equals_its_python_function() -> None:
    key = sketches.derive_key(b"k", "sparse")
    compiled, plain = np.empty(50, np.uint64), np.empty(50, np.uint64)
    sketches.hash_words(key, 7, compiled)
    with np.errstate(over="ignore"):
        sketches.hash_words.py_func(key, 7, plain)  # type: ignore[attr-defined]
    assert compiled.tolist() == plain.tolist()


def test_the_leading_singular_value_is_far_above_the_true_sensitivity() -> None:
    # The paper's calibration for (m, n) = (100, 2000): 5.45 against 1.22.
    matrix = np.random.default_rng(0).standard_normal((100, 2000)) / 10.0
    leading = np.linalg.svd(matrix, compute_uv=False)[0]
    assert leading == pytest.approx(5.45, abs=0.1)
    assert leading / np.linalg.norm(matrix, axis=0).max() > 4


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: SparseSketch(b"", 10, 10, 3),
        lambda: SparseSketch(b"", 10, 10, 4),
        lambda: SparseSketch(b"", 0, 10, 1),
        lambda: SparseSketch(b"", 10, 0, 1),
        lambda: HadamardSketch(b"", 10, 17),
        lambda: HadamardSketch(b"", 0, 1),
        lambda: SparseSketch(b"", 10, 4, 1).apply(table(rows=11)),
        lambda: SparseSketch(b"", 10, 4, 1).apply(table(rows=5), start=6),
        lambda: SparseSketch(b"", 10, 4, 1).transpose(np.zeros(5, np.int64)),
        lambda: SparseSketch(b"", 10, 4, 1).transpose(np.zeros(4)),  # type: ignore[arg-type]
        lambda: SparseSketch(b"", 10, 4, 1).apply(table(rows=5).astype(np.int32)),
        lambda: HadamardSketch(b"", 10, 4).apply(table(rows=5).astype(np.float64)),
        lambda: SparseSketch(b"", 10, 4, 1).apply(table(rows=5)[0]),
        lambda: HadamardSketch(b"", 10, 4).transpose(np.zeros(4, np.int64), start=3, stop=11),
    ],
)
def test_impossible_sketches_are_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"sketch|shape"):
        wrong()  # type: ignore[operator]
