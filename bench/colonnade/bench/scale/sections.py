"""The sections of ``colonnade bench scale``: each is one module with a function `measure`.

``measure(folder, quick=...)`` takes a scratch folder of its own and returns fields of the result.
A section is imported when it is measured, so that what one needs slows no other down.
"""

import importlib
from pathlib import Path
from typing import Any, Protocol

MODULES = {
    "rows": "colonnade.bench.scale.rows",
    "dask": "colonnade.bench.scale.dask",
    "coordinators": "colonnade.bench.scale.coordinators",
    "clients": "colonnade.bench.scale.clients",
    "connections": "colonnade.bench.scale.connections",
    "simulate": "colonnade.bench.scale.simulate",
}
"""The module of each section, in the order in which they are measured."""


class Measure(Protocol):
    """Measure one section."""

    def __call__(self, folder: Path, *, quick: bool) -> dict[str, Any]:
        """Return fields of the result, by name; ``folder`` is empty and removed afterwards."""


def section(name: str) -> Measure:
    """Return the function that measures a section."""
    found: Measure = importlib.import_module(MODULES[name]).measure
    return found
