"""Both engines return the same integers, however rows are divided and whatever a cluster loses."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.engines import FakeCluster, calls, job_columns, write_table

from colonnade.core import threads
from colonnade.core.errors import DatasetChanged
from colonnade.data.table import Table
from colonnade.linear.ball import Projection, project, triangle
from colonnade.methods.frank_wolfe.residual import TaskParameters, residual
from colonnade.methods.holdout import held_out, rows_fitted
from colonnade.methods.sealed.rows import RowScale
from colonnade.party.engine import kernels
from colonnade.party.engine.base import Engine
from colonnade.party.engine.dask import DaskEngine
from colonnade.party.engine.kernels import KERNELS
from colonnade.party.engine.local import LOCAL
from colonnade.party.engine.stored import StoredColumns
from colonnade.party.engine.worker import sum_from_bytes
from colonnade.sketching.dense import HadamardSketch
from colonnade.sketching.sparse import SparseSketch

ROWS = 1000
CASES = [{}, {"tight": True}, {"holdout": 150}, {"tight": True, "holdout": 300}]
Tables = tuple[Table, Table]


@pytest.fixture(scope="module", params=[True, False], ids=["some absent", "all there"])
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return write_table(tmp_path_factory.mktemp("table"), ROWS, presence=request.param)


def whole(source: Any, kernel: str, arguments: Any) -> Any:
    """Return a kernel of all rows at once."""
    return KERNELS[kernel](source.rows(0, source.n_rows), **arguments)


def dask_engine(cluster: FakeCluster | None = None, rows: int = 77) -> DaskEngine:
    return DaskEngine(cluster or FakeCluster(), patience_s=0.0001, least_rows=rows)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("chunk", [64, 331])
def test_every_division_of_the_rows_has_the_same_sum(
    tables: Tables, kernel: str, case: dict[str, Any], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, arguments = calls(tables, job_columns(tables, **case))[kernel]
    expected = whole(source, kernel, arguments)
    assert expected.any()
    monkeypatch.setattr(threads, "_LEAST", 90)
    monkeypatch.setattr(kernels, "_LEAST_ROWS", chunk)
    monkeypatch.setattr(kernels, "_MOST_ROWS", chunk)
    engines: list[Engine] = [LOCAL, *(dask_engine(rows=rows) for rows in (77, 128, 999))]
    for engine in engines:
        found = engine.sum(kernel, source, arguments)
        assert found.dtype == np.int64
        assert np.array_equal(found, expected)


def test_every_kernel_has_a_case(tables: Tables) -> None:
    assert calls(tables, job_columns(tables)).keys() == KERNELS.keys()


def test_kernels_are_what_methods_define(tables: Tables) -> None:
    columns = job_columns(tables)
    asked = calls(tables, columns)
    arguments: Any = asked["gram"][1]
    assert columns.label is not None
    rows = project(
        columns.features,
        columns.label,
        Projection(arguments["coef"], arguments["offset"]),
        presence=columns.presence,
    )
    assert np.array_equal(LOCAL.sum("gram", columns, arguments), triangle(rows))
    sketch = SparseSketch(b"seed", ROWS, 64)
    found = LOCAL.sum("sketches", columns, asked["sketches"][1])
    assert np.array_equal(found, sketch.apply(rows).reshape(-1))
    scale = RowScale(ROWS, 37, 3, ball=2**20, radius=100)
    found = LOCAL.sum("buckets", columns, asked["buckets"][1])
    assert np.array_equal(found, scale.sums(rows, b"signs"))
    scored: Any = asked["scores"][1]
    public = TaskParameters(*(scored[name] for name in ("coef", "q", "weight", "clip", "offset")))
    left = residual(columns.features, columns.label, public, sketch).astype(np.int64)
    if columns.presence is not None:
        left *= columns.presence > 0
    found = LOCAL.sum("scores", columns, scored)
    assert np.array_equal(found, columns.features.astype(np.int64) @ left)


def test_a_dense_sketch_is_of_all_rows_at_once(tables: Tables) -> None:
    columns, cluster = job_columns(tables), FakeCluster()
    sketch = HadamardSketch(b"seed", ROWS, 32)
    arguments: dict[str, Any] = {"place": 0, "mean": 0.0, "deviation": 1.0, "clip": 0.0}
    arguments |= {"sketch": kernels.sketch_plain(sketch)}
    expected = sketch.apply(columns.features[:1]).reshape(-1)
    for engine in (LOCAL, dask_engine(cluster)):
        assert np.array_equal(engine.sum("share", columns, arguments), expected)
    assert not cluster.seen


@pytest.mark.parametrize(
    "cluster",
    [
        FakeCluster(lose=lambda number: number % 3 == 1),
        FakeCluster(lose=lambda _number: True),
        FakeCluster(threads=0, lose=lambda _number: True),
        FakeCluster(error=RuntimeError),
    ],
    ids=["some ranges", "all ranges", "no workers", "scheduler"],
)
def test_what_a_cluster_loses_the_head_computes(
    tables: Tables, cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    columns = job_columns(tables, tight=True, holdout=100)
    source, arguments = calls(tables, columns)["gram"]
    with caplog.at_level(logging.WARNING):
        found = dask_engine(cluster).sum("gram", source, arguments)
    assert np.array_equal(found, whole(source, "gram", arguments))
    assert "engine_alone" in caplog.text
    assert "text of a worker" not in caplog.text


def test_what_is_shipped_is_a_name_and_public_numbers(tables: Tables) -> None:
    cluster, columns = FakeCluster(), job_columns(tables, tight=True, holdout=100)
    plain = (str, bytes, int, float, bool, type(None))
    for kernel, (source, arguments) in calls(tables, columns).items():
        dask_engine(cluster).sum(kernel, source, arguments)

    def check(value: object) -> None:
        if isinstance(value, dict):
            assert all(isinstance(key, str) for key in value)
            check(list(value.values()))
        elif isinstance(value, list | tuple):
            for each in value:
                check(each)
        elif isinstance(value, np.ndarray):
            assert value.dtype.kind == "i"
            assert value.size < ROWS
        else:
            assert type(value) in plain

    assert len(cluster.seen) > 2 * len(KERNELS)
    for call in cluster.seen:
        check(call)


def test_a_folder_with_another_table_is_refused(tmp_path: Path) -> None:
    tables = write_table(tmp_path / "table", 200)
    stored = job_columns(tables).stored
    assert stored is not None
    assert stored.read(0, 10)[0].shape == (4, 10)
    other, _ = write_table(tmp_path / "table", 200)
    version = other.header.dataset_version
    again = StoredColumns.of(stored.plain() | {"version": version})
    assert again.read(0, 10)[0].shape == (4, 10)
    with pytest.raises(DatasetChanged):
        StoredColumns.of(stored.plain() | {"version": "00" * 16}).read(0, 10)


def test_rows_kept_out_are_counted_by_ranges() -> None:
    out = held_out(10_000, 200)
    assert np.array_equal(held_out(3000, 200, first=5000), out[5000:8000])
    assert rows_fitted(10_000, 200) == 10_000 - out.sum()


@pytest.mark.parametrize("body", [b"", b"\0" * 8, b"\3" + b"\0" * 7, b"1234567"])
def test_bytes_that_are_no_sum_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        sum_from_bytes(body)
