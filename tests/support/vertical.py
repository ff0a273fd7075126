"""A vertical job in one process, and how well it does."""

from colonnade.optim.vertical.spec import FrankWolfeSpec
from colonnade.server.frank_wolfe import Iterate
from colonnade.simulate.inprocess import Data, grid, model_of, parties, quality, run

__all__ = ["Data", "grid", "parties", "r2", "run"]


def r2(data: Data, spec: FrankWolfeSpec, state: Iterate) -> float:
    """Return the share of the label's variance that the model explains."""
    return quality(data, model_of(spec, state), spec.loss)
