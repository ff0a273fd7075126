"""From a party's configuration to its engine."""

from pathlib import Path

from colonnade.party.engine.base import Engine
from colonnade.party.engine.local import LOCAL
from colonnade.party.engine.settings import EngineName


def open_engine(
    engine: EngineName, scheduler: str | None, tls: Path | None, workers: int
) -> Engine:
    """Return the engine that was checked; Dask is imported for its own alone."""
    if engine == "local":
        return LOCAL
    from colonnade.party.engine.cluster import join_cluster, start_cluster
    from colonnade.party.engine.dask import DaskEngine

    if scheduler is not None and tls is not None:
        return DaskEngine(join_cluster(scheduler, tls))
    return DaskEngine(start_cluster(workers))
