"""A Dask cluster: the organization's own, reached over TLS, or one on this machine.

The client submits nothing but `worker.range_sum` with plain arguments and takes nothing but
integers as bytes from workers.
"""

import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from colonnade.core.errors import BadInput
from colonnade.party.engine.worker import range_sum

CA_NAME, CERTIFICATE_NAME, KEY_NAME = "ca.pem", "cert.pem", "key.pem"

_CONNECT_S = 30
_CLOSE_S = 5
_PLAIN = ["dask", "msgpack", "error"]  # forms in which results are taken: bytes as they are
# Pages of a scheduler and of workers, which nobody needs on a cluster of one machine.
_NO_PAGES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


class DaskCluster:
    """Workers of Dask, behind one client."""

    def __init__(self, client: Any, started: Any = None) -> None:
        self._client, self._started = client, started
        self._pending: dict[Any, int] = {}

    def n_threads(self) -> int:
        """Return how many ranges are computed at once; 0 if nobody is there."""
        if self._client.status != "running":
            return 0
        try:
            return sum(self._client.nthreads().values())
        except OSError:  # a time-out is one: the scheduler is slow or gone, and the head goes on
            return 0

    def submit(self, calls: Mapping[int, tuple[Any, ...]]) -> None:
        """Have `range_sum` called; ``calls`` are its arguments by the number of a range."""
        for number, arguments in calls.items():
            future = self._client.submit(range_sum, *arguments, pure=False)
            self._pending[future] = number

    def results(self, wait_s: float) -> Mapping[int, bytes] | None:
        """Wait for sums of ranges; empty if none came in time, None if no more will come."""
        from distributed import wait

        if not self._pending or self._client.status not in ("running", "connecting"):
            return None
        try:
            with self._client.as_current():
                done = wait(list(self._pending), wait_s, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            return {}
        # What failed, or was lost with the scheduler, the head computes.
        found = {future: self._pending.pop(future) for future in done}
        ready = [future for future in found if future.status == "finished"]
        sums = self._client.gather(ready, errors="skip", direct=False)
        return {found[future]: body for future, body in zip(ready, sums, strict=True)}

    def forget(self) -> None:
        """Let go of all that was submitted."""
        for future in self._pending:
            future.cancel()
        self._pending.clear()

    def worker_pids(self) -> list[int]:
        """Return the workers' processes, of those that were started on this machine."""
        nannies = {} if self._started is None else self._started.workers
        return [nanny.pid for nanny in nannies.values() if nanny.pid is not None]

    def close(self) -> None:
        """Disconnect, and stop the workers if they were started for this client.

        A cluster that does not answer in time is left: its workers end with their scheduler.
        """
        for each in (self._client, self._started):
            if each is not None:
                with contextlib.suppress(TimeoutError):
                    each.close(_CLOSE_S)


def join_cluster(scheduler: str, tls: Path) -> DaskCluster:
    """Connect to an organization's scheduler with the certificate in the folder ``tls``."""
    distributed = _installed()
    paths = {name: tls / name for name in (CA_NAME, CERTIFICATE_NAME, KEY_NAME)}
    for path in paths.values():
        if not path.is_file():
            raise BadInput(f"{path}: is missing; the cluster's certificates are three PEM files")
    security = distributed.Security(
        tls_ca_file=str(paths[CA_NAME]),
        tls_client_cert=str(paths[CERTIFICATE_NAME]),
        tls_client_key=str(paths[KEY_NAME]),
        require_encryption=True,
    )
    return DaskCluster(_client(distributed, scheduler, security))


def start_cluster(workers: int) -> DaskCluster:
    """Start workers on this machine, with keys of their own that end with them."""
    distributed = _installed()
    with _configured(_NO_PAGES):
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            security=True,
            scheduler_kwargs={"dashboard": False},
            dashboard_address="127.0.0.1:0",
            memory_limit=0,  # chunks are bounded; mapped pages are not a worker's own
            silence_logs=logging.ERROR,
        )
    try:
        client = _client(distributed, cluster, cluster.security)
    except BaseException:
        cluster.close(_CLOSE_S)
        raise
    return DaskCluster(client, cluster)


def _client(distributed: Any, address: Any, security: Any) -> Any:
    try:
        return distributed.Client(
            address,
            security=security,
            timeout=_CONNECT_S,
            deserializers=_PLAIN,
            set_as_default=False,
        )
    except (OSError, ValueError) as error:
        raise BadInput(
            f"scheduler: cannot be reached within {_CONNECT_S} s ({type(error).__name__}); check "
            "its address and the certificates"
        ) from None


def _configured(settings: Mapping[str, Any]) -> Any:
    import dask

    return dask.config.set(settings)


def _installed() -> Any:
    """Import Dask, which only a party with this engine needs."""
    try:
        import distributed
    except ImportError:
        raise BadInput(
            'engine = "dask" needs Dask; install colonnade[dask] here and on the workers'
        ) from None
    logging.getLogger("distributed").setLevel(logging.ERROR)  # ours says what matters
    return distributed
