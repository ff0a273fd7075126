"""Small made-up organizations for real processes."""

import numpy as np

from colonnade.core.fixedpoint import Bounds
from colonnade.simulate.sites import Site, SiteColumn

NAMES = ("hospital", "laboratory", "insurer")


def small_sites(*, n_rows: int = 400, clients: int = 0) -> list[Site]:
    """Return tables of three organizations about the same people, or of their clients."""
    draw = np.random.default_rng(5)
    values = draw.normal(size=(len(NAMES), 3, n_rows))
    label = np.clip(values[:, 0].sum(axis=0), -6.0, 6.0)
    whose = np.arange(n_rows) % clients if clients else None
    return [
        Site(
            name,
            [
                SiteColumn(f"x{i}", Bounds(-4.0, 4.0), column)
                for i, column in enumerate(values[place])
            ],
            SiteColumn("y", Bounds(-6.0, 6.0), label),
            whose,
        )
        for place, name in enumerate(NAMES)
    ]
