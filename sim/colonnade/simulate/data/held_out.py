"""Rows that nothing is fitted to, neither a job nor what it is compared with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from colonnade.core.arguments import BadArgument
from colonnade.simulate.sites import Site, SiteColumn

MAX_ROWS = 20_000  # the error of a score then is in its third digit
_LEAST_ROWS, _LEAST_FITTED = 2, 5


@dataclass(frozen=True, slots=True)
class Divided:
    """The organizations' tables in two parts; what is scored is ``held_out``, or ``fitted``."""

    fitted: Sequence[Site]
    held_out: Sequence[Site] | None

    @property
    def n_rows(self) -> int:
        """Rows that the job fits."""
        return len(self.fitted[0].features[0].values)

    @property
    def scored(self) -> Sequence[Site]:
        """The rows that quality is computed on."""
        return self.fitted if self.held_out is None else self.held_out


def rows_held_out(part: float, n_rows: int) -> int:
    """Return how many of ``n_rows`` are to be held out."""
    if not 0.0 <= part < 1.0:
        raise BadArgument("holdout", "must be at least 0 and below 1")
    return min(max(_LEAST_ROWS, round(part * n_rows)), MAX_ROWS) if part else 0


def divide(sites: Sequence[Site], count: int, *, seed: int) -> Divided:
    """Hold out ``count`` random rows, the same ones at every organization."""
    if not count:
        return Divided(sites, None)
    n_rows = len(sites[0].features[0].values)
    if n_rows - count < _LEAST_FITTED:
        raise BadArgument(
            "holdout", f"leaves {n_rows - count} of {n_rows} rows to fit; leave {_LEAST_FITTED}"
        )
    chosen = np.zeros(n_rows, bool)
    chosen[np.random.default_rng(seed).choice(n_rows, count, replace=False)] = True
    return Divided([_of(site, ~chosen) for site in sites], [_of(site, chosen) for site in sites])


def _of(site: Site, rows: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Site:
    def part(column: SiteColumn) -> SiteColumn:
        return column.rows(rows)

    label = None if site.label is None else part(site.label)
    return replace(site, features=tuple(map(part, site.features)), label=label)
