"""Tables for measuring accuracy, in two parts: rows that are fitted, and rows that are scored.

Made-up tables are declared within ten standard deviations, as by somebody who knows little; public
ones as their quantities allow. `CHOSEN_ON` are the tables that rules and constants were chosen on
(other rows, other noise); none was chosen on the others.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colonnade.bench.vertical.methods import SHAPES, Case, Raw, made_table, on_grid, public_table
from colonnade.bench.vertical.tables import FRESH, TABLES
from colonnade.methods.problem import Loss
from colonnade.simulate.inprocess.vertical import Data

CHOSEN_ON = ("equicorrelated", "factors", "ar", "california", "credit_default", "adult")
ROWS, SCORED = 100_000, 20_000
_HELD_OUT = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class DividedTable:
    """A table in its own units: rows to fit, and rows that nothing is fitted to."""

    fitted: Raw
    scored: Raw

    def declared(self) -> tuple[Data, Data]:
        """Return both parts on the grid, under the declared bounds."""
        fitted, scored = (on_grid(r, r.bounds, r.label_bounds) for r in (self.fitted, self.scored))
        return fitted, scored


def cases(quick: bool, folder: Path | None) -> Iterator[Case[DividedTable]]:
    """Yield the tables; ``folder`` holds the public ones."""
    for features, shapes in ((40, tuple(SHAPES)), (400, ("equicorrelated", "factors"))):
        for shape in shapes:
            if not quick or (features, shape) in ((40, "equicorrelated"), (40, "factors")):
                made = functools.partial(_made, shape, features)
                yield Case(f"{shape} d={features}", Loss.SQUARED, made)
    if folder is None:
        return
    for name, table in (TABLES | FRESH).items():
        if not quick or name in ("california", "credit_default", "electricity", "phishing"):
            yield Case(name, table.loss, functools.partial(_read, folder, name))


def is_fresh(name: str) -> bool:
    """Return whether no rule was chosen on a table."""
    return not name.startswith(CHOSEN_ON)


def _made(shape: str, features: int, seed: int) -> DividedTable:
    whole = made_table(shape, features, seed, rows=ROWS + SCORED)
    return _divide(whole, np.arange(ROWS + SCORED) >= ROWS)


def _read(folder: Path, name: str, seed: int) -> DividedTable:
    whole = public_table(folder, name)
    draw = np.random.default_rng(seed).permutation(whole.label.size)
    held_out = np.zeros(whole.label.size, bool)
    held_out[draw[: round(_HELD_OUT * draw.size)]] = True
    return _divide(whole, held_out)


def _divide(whole: Raw, held_out: NDArray[np.bool_]) -> DividedTable:
    return DividedTable(whole.part(~held_out), whole.part(held_out))
