"""The columns that a simulated organization holds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray, IntArray
from colonnade.core.fixedpoint import Bounds
from colonnade.data.columns import Column as Declared


@dataclass(frozen=True, slots=True)
class SiteColumn:
    """A column in its own unit, with the bounds that its owner declares.

    Parameters
    ----------
    values
        Numbers; of texts what they are read as.
    texts
        What its owner's file holds, if that is no numbers.
    declared
        How its owner declares it, if that is more than a name and bounds.
    """

    name: str
    bounds: Bounds
    values: FloatArray
    texts: AnyArray | None = None
    declared: Declared | None = None

    def encoded(self) -> "list[SiteColumn]":
        """Return the columns of numbers that it becomes; NaN is missing."""
        if self.declared is None:
            return [self]
        spread = self.declared.encoding().spread(self.values)
        names = self.declared.encoding().names
        return list(map(SiteColumn, names, self.declared.limits(), spread))

    def filled(self) -> "list[SiteColumn]":
        """Return these columns with the declared fills for missing values."""
        fills = (self.bounds.middle,) if self.declared is None else self.declared.fills()
        return [
            replace(each, values=np.where(np.isnan(each.values), fill, each.values))
            for each, fill in zip(self.encoded(), fills, strict=True)
        ]

    @property
    def group(self) -> str:
        """The group that these columns are, or empty."""
        return "" if self.declared is None else self.declared.encoding().group

    @property
    def is_exact(self) -> bool:
        """Whether its bounds are attained by declaration, so that none tighter are bought."""
        return self.declared is not None and self.declared.is_exact

    def rows(self, chosen: AnyArray) -> "SiteColumn":
        """Return the column of some of the rows."""
        texts = None if self.texts is None else self.texts[chosen]
        return replace(self, values=self.values[chosen], texts=texts)


@dataclass(frozen=True, slots=True)
class Site:
    """One organization's table."""

    party: str
    features: Sequence[SiteColumn]
    label: SiteColumn | None
    clients: IntArray | None = None  # whose each row is, if the table is divided among clients

    def encoded(self) -> list[SiteColumn]:
        """Return the features as columns of numbers."""
        return [made for column in self.features for made in column.encoded()]

    def groups(self) -> list[str]:
        """Return the group of each of these columns."""
        return [column.group for column in self.features for _ in column.encoded()]
