"""A whole federation on one machine, from one table: real processes, ledgers and noise.

`simulate` fits one model over columns that are split among organizations, `simulate_admm` over rows
that are split among clients. What they return holds the model, the report, and its quality beside
references, which is computed from all rows in one place: nothing about quality is private.

Names are imported when they are first used, so that the package itself is quick to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colonnade.simulate.api import simulate, simulate_admm
    from colonnade.simulate.result import Quality, Simulation, SimulationRun

__all__ = ["Quality", "Simulation", "SimulationRun", "simulate", "simulate_admm"]

_HOMES = {"simulate": "api", "simulate_admm": "api"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'result')}"), name)
