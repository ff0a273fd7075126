"""What a configuration may say of an engine; read by processes that never compute."""

from pathlib import Path
from typing import Literal, TypeAlias

EngineName: TypeAlias = Literal["local", "dask"]

_TLS = "tls://"


def check_engine(engine: EngineName, scheduler: str | None, tls: Path | None, workers: int) -> None:
    """Refuse settings that do not say, or say twice, where an engine computes."""
    if engine == "local":
        if scheduler or tls or workers:
            raise ValueError('engine: only engine = "dask" has a scheduler or workers')
        return
    if bool(scheduler) == bool(workers):
        raise ValueError('engine: "dask" needs either a scheduler or a number of workers')
    if scheduler is not None and (not scheduler.startswith(_TLS) or tls is None):
        raise ValueError(
            f"scheduler: rows travel over TLS alone; begin with {_TLS} and set scheduler_tls"
        )
