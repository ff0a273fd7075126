"""A real cluster of Dask's: the same integers over TLS, also after a worker was killed."""

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.engines import calls, job_columns, write_table

from colonnade.core.errors import BadInput
from colonnade.party.engine import cluster as cluster_module
from colonnade.party.engine.cluster import (
    CA_NAME,
    CERTIFICATE_NAME,
    KEY_NAME,
    DaskCluster,
    join_cluster,
    start_cluster,
)
from colonnade.party.engine.dask import DaskEngine
from colonnade.party.engine.local import LOCAL

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    # Dask's own: sockets and subprocesses that it leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ROWS = 40_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[DaskCluster]:
    started = start_cluster(2)
    yield started
    started.close()


class Killing:
    """A cluster whose first result is the last thing that one of its workers does."""

    def __init__(self, cluster: DaskCluster) -> None:
        self._cluster, self.killed = cluster, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def results(self, wait_s: float) -> Mapping[int, bytes] | None:
        found = self._cluster.results(wait_s)
        if found and not self.killed:
            self.killed = next(iter(self._cluster.worker_pids()))
            os.kill(self.killed, signal.SIGKILL)
        return found


def test_a_cluster_has_the_sums_of_one_machine_also_after_a_worker_is_killed(
    cluster: DaskCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = write_table(tmp_path / "table", ROWS)
    asked = calls(tables, job_columns(tables, tight=True, holdout=100))
    engine = DaskEngine(cluster, least_rows=7000)
    for kernel, (source, arguments) in asked.items():
        expected = LOCAL.sum(kernel, source, arguments)
        assert np.array_equal(engine.sum(kernel, source, arguments), expected)
    before, source = {*cluster.worker_pids()}, asked["gram"][0]
    assert len(before) == cluster.n_threads() == 2
    killing = Killing(cluster)
    found = DaskEngine(killing, least_rows=500).sum("gram", *asked["gram"])
    assert np.array_equal(found, LOCAL.sum("gram", source, asked["gram"][1]))
    assert killing.killed in before
    assert "engine_" not in caplog.text  # it was the cluster that computed all of it


def test_a_cluster_without_certificates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        join_cluster("tls://127.0.0.1:1", tmp_path)


def certificates(folder: Path) -> Path:
    """Write a fresh authority's certificates, as an organization makes them for its cluster."""
    from distributed import Security

    made = Security.temporary().get_tls_config_for_role("client")
    folder.mkdir()
    for name, content in (
        (CA_NAME, made["ca_file"]),
        (CERTIFICATE_NAME, made["cert"]),
        (KEY_NAME, made["key"]),
    ):
        (folder / name).write_text(content)
    return folder


def test_a_scheduler_is_joined_with_a_certificate_of_its_authority_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import LocalCluster, Security

    tls = certificates(tmp_path / "tls")
    paths = [str(tls / name) for name in (CA_NAME, CERTIFICATE_NAME, KEY_NAME)]
    roles = ("client", "scheduler", "worker")
    keys = {
        f"tls_{role}_{part}": path
        for role in roles
        for part, path in zip(("cert", "key"), paths[1:], strict=True)
    }
    security = Security(tls_ca_file=paths[0], require_encryption=True, **keys)
    tables = write_table(tmp_path / "table", 5000)
    source, arguments = calls(tables, job_columns(tables))["means"]
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tls",
        security=security,
        dashboard_address="127.0.0.1:0",
    ) as started:
        joined = join_cluster(started.scheduler_address, tls)
        found = DaskEngine(joined, least_rows=1000).sum("means", source, arguments)
        assert np.array_equal(found, LOCAL.sum("means", source, arguments))
        joined.close()
        monkeypatch.setattr(cluster_module, "_CONNECT_S", 1)
        with pytest.raises(BadInput):
            join_cluster(started.scheduler_address, certificates(tmp_path / "others"))


class Silent:
    """A client whose scheduler answers nothing in time."""

    status = "running"

    def nthreads(self) -> dict[str, int]:
        raise TimeoutError

    def close(self, timeout: float) -> None:
        raise TimeoutError


def test_a_scheduler_that_does_not_answer_in_time_has_no_workers_and_raises_nothing() -> None:
    # After the charge an exception would abandon a release that was paid for.
    cluster = DaskCluster(Silent(), Silent())
    assert cluster.n_threads() == 0
    cluster.close()
