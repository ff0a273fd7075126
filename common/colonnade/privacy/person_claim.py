"""A person's privacy loss to one project's job, composed over all projects of an organization."""

import re
from dataclasses import dataclass
from typing import ClassVar

from colonnade.core.arrays import IntArray
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.privacy.sampling import NoiseSource

_NAMES = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class PersonClaim:
    """Count what releases of another ledger can cost any person; nothing is released here.

    Privacy: zCDP adds up over adaptively chosen releases (Bun and Steinke 2016, Lemma 2.3), from
    whatever tables they are made. If every priced release of the member ledgers is preceded by a
    claim of at least its price, the sum of the claims bounds what a person whose row is in all of
    the tables loses to all of them together.
    """

    name: ClassVar[str] = "person_claim"
    ledger: str  # the member's id
    units: int

    def __post_init__(self) -> None:
        if type(self.units) is not int or not 0 <= self.units <= MAX_UNITS:
            raise ValueError("a claim has a price")
        if type(self.ledger) is not str or not _NAMES.fullmatch(self.ledger):
            raise ValueError("a claim names its ledger")

    @property
    def cost(self) -> int:
        """The claim itself."""
        return self.units

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Refuse: what is claimed is released by another ledger."""
        del value, noise
        raise TypeError("a claim counts what another ledger releases; nothing is drawn under it")
