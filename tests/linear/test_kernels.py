"""The score kernel is exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.linear import kernels
from colonnade.linear.kernels import score


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n_rows", [1, 7, 127, 128, 129, 16384, 16385, 50_001])
def test_scores_equal_exact_integer_products(n_rows: int, threads: int) -> None:
    draw = np.random.default_rng(n_rows)
    columns = draw.integers(-(2**15), 2**15, (5, n_rows), dtype=np.int16)
    residual = draw.integers(-(2**15), 2**15, n_rows, dtype=np.int16)
    exact = columns.astype(np.int64) @ residual.astype(np.int64)
    assert score(columns, residual, threads=threads).tolist() == exact.tolist()


@pytest.mark.parametrize("a", [-(2**15), -(2**14), 2**14, 2**15 - 1])
@pytest.mark.parametrize("b", [-(2**15), -(2**14), 2**14, 2**15 - 1])
def test_scores_do_not_overflow_at_the_ends_of_int16(a: int, b: int) -> None:
    # All products equal and as large as they get: 32-bit sums would overflow after two rows.
    columns, residual = np.full((1, 40_000), a, np.int16), np.full(40_000, b, np.int16)
    assert score(columns, residual).tolist() == [a * b * 40_000]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), n_rows=st.integers(1, 300))
def test_the_compiled_kernel_equals_its_python_function(seed: int, n_rows: int) -> None:
    draw = np.random.default_rng(seed)
    columns = draw.integers(-(2**14), 2**14 + 1, (2, n_rows), dtype=np.int16)
    residual = draw.integers(-(2**14), 2**14 + 1, n_rows, dtype=np.int16)
    compiled, plain = np.zeros(2, np.int64), np.zeros(2, np.int64)
    kernels._score_rows(columns, residual, 0, n_rows, compiled)
    kernels._score_rows.py_func(columns, residual, 0, n_rows, plain)  # type: ignore[attr-defined]
    assert compiled.tolist() == plain.tolist()


def test_a_read_only_mapping_is_accepted(tmp_path: object) -> None:
    path = f"{tmp_path}/columns"
    np.arange(3000, dtype=np.int16).tofile(path)
    mapped = np.memmap(path, np.int16, "r", shape=(3, 1000))
    residual = np.ones(1000, np.int16)
    assert score(mapped, residual).tolist() == mapped.astype(np.int64).sum(axis=1).tolist()


def test_other_types_and_shapes_are_refused() -> None:
    columns, residual = np.zeros((2, 5), np.int16), np.zeros(5, np.int16)
    with pytest.raises(ValueError, match="int16"):
        score(columns.astype(np.int32), residual)
    with pytest.raises(ValueError, match="int16"):
        score(columns, residual.astype(np.float64))
    with pytest.raises(ValueError, match="shape"):
        score(columns, residual[:4])
