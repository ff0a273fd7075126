"""What both sides of marginal regression know: the specification, its bytes and prices.

Every feature is regressed on the label by itself (Genovese, Jin, Wasserman and Yao 2012), and the
model is the mean of these regressions. Two rounds: the sums of columns and of their squares; then
the products of columns with the label, centred by what the first round released.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from colonnade.core.fixedpoint import GRID
from colonnade.linear.sums import moments_mechanism
from colonnade.methods.base import Member, Method, MethodPlan, Part, Unit
from colonnade.methods.column_moments import moments_code
from colonnade.methods.problem import Labels, Loss, Problem
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.sketching.packing import ShareCode

MEANS, PRODUCTS = "means", "products"
_PRICES = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class MarginalSpec:
    """A job of marginal regression; every party holds the label."""

    kind: ClassVar[str] = "marginal-regression"
    labels: ClassVar[Labels] = Labels.SHARED
    loss: ClassVar[Loss] = Loss.SQUARED
    rounds: ClassVar[int] = 1  # after the first
    sketch_dim: ClassVar[int] = 0

    population: int  # rows
    parts: tuple[Part, ...]
    mean_units: int
    product_units: int

    def __post_init__(self) -> None:
        for part in self.parts:
            if not part.holds_label:
                raise ValueError("every party holds the label")
            self.max_units(part.party)  # a price too small for its noise is refused here

    def columns(self, party: str) -> int:
        """Return how many features ``party`` has."""
        return next(len(part.features) for part in self.parts if part.party == party)

    def made(self, party: str, kind: str) -> tuple[DiscreteGaussian, ShareCode]:
        """Return mechanism and code of a release.

        Privacy: a product of two values on the grid, divided by ``GRID`` and rounded down, lies
        within ``+-GRID``. One row moves each of ``count`` sums of them by at most ``2 GRID``.
        """
        count = self.columns(party)
        if kind == MEANS:  # of the label too
            noise = moments_mechanism(count + 1, self.mean_units)
            return noise, moments_code(count + 1, self.population, noise)
        if kind == PRODUCTS:
            sensitivity2 = count * (2 * GRID) ** 2
            noise = DiscreteGaussian.within(self.product_units, l2_sensitivity2=sensitivity2)
            return noise, ShareCode.bounded(count, self.population * GRID, noise)
        raise ValueError("the job has no release of that kind")

    def max_releases(self, party: str) -> dict[str, int]:
        """Return how many releases of each kind the job asks of ``party``."""
        return {MEANS: 1, PRODUCTS: 1}

    def units_by_kind(self, party: str) -> dict[str, int]:
        """Return what each release costs ``party``."""
        return {kind: self.made(party, kind)[0].cost for kind in self.max_releases(party)}

    def max_units(self, party: str) -> int:
        """Return what the job costs ``party``."""
        return sum(self.units_by_kind(party).values())

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""
        return self.made(party, kind)[1].n_bytes

    def task_entries(self, party: str) -> int:
        """Return the numbers of a task: where the label is centred."""
        return 1


def encode(spec: MarginalSpec) -> bytes:
    """Encode a specification; who the parties are is said by the job's members."""
    return _PRICES.pack(spec.mean_units, spec.product_units)


def decode(body: bytes, members: Sequence[Member], population: int) -> MarginalSpec:
    """Decode a specification strictly: two numbers, and nothing else."""
    if len(body) != _PRICES.size:
        raise ValueError("the method has two prices")
    parts = tuple(Part(each.party, each.features, each.holds_label) for each in members)
    return MarginalSpec(population, parts, *_PRICES.unpack(body))


def plan(problem: Problem, options: Any) -> MethodPlan[MarginalSpec]:
    """Give a tenth of the budget to means and the rest to products, alike for all parties."""
    del options  # it has none of its own
    parts = tuple(Part(party, tuple(names), True) for party, names in problem.features.items())
    each = problem.rho_units // len(parts)
    spec = MarginalSpec(problem.n_rows, parts, each // 10, each - each // 10)
    return MethodPlan(problem, spec)


MARGINAL: Method[MarginalSpec] = Method(
    kind=MarginalSpec.kind,
    unit=Unit.RECORD,
    encode=encode,
    decode=decode,
    plan=plan,
    section="marginal",
)
