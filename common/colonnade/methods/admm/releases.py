"""What a client of a job releases: radius, noise, price and packing, in exact integers.

Privacy: the integer vector ``k`` that a client hands to the mechanism has ``|k| <= radius``, which
is checked in integers as the last step before the noise (`admm.grid.to_grid`), for any data and any
task. By the triangle inequality replacing all data of the client moves it by ``2 radius``, so a
discrete Gaussian of variance ``s`` costs ``4 radius**2 / (2 s)`` zCDP (Canonne, Kamath and Steinke
2020, Theorem 4). Nothing else is used: neither the loss, nor how well a step was solved, nor what
the coordinator sent.

Planned rounds have radii of their own. A radius is a number of quanta of ``R / 1024`` and its noise
has that number squared times the variance of one quantum, so all of them have one price, to the
unit, and one size: both are known before the job begins.

Sums (`Aggregate.HOST`). A host that holds many clients' rows adds up the vectors of those who were
asked and adds one noise. Replacing one client moves one term by at most ``2 radius`` and the sum no
farther, so the price of every client in the sum is that of an answer with the same noise. This
holds against everybody but the host, which has the rows anyway.

Sums over a cohort (`Aggregate.COHORT`). A host adds its part of the noise to that sum and masks it
(`masking.cohort`). Opened, the sum over all hosts has at least as many parts as the mechanism was
priced for, if the named peers follow the protocol (`privacy.distributed`).
"""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from colonnade.privacy.distributed import GaussianShare
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.sketching.packing import ShareCode

if TYPE_CHECKING:
    from colonnade.methods.admm.spec import AdmmSpec

DISPLACEMENT = "displacement"
INTERCEPT = "intercept"
# A planned radius is so many of these parts of the greatest.
WHOLE = 1024


@dataclass(frozen=True, slots=True)
class ClientRelease:
    """One kind of release at one radius, in grid steps."""

    kind: str
    radius: int
    mechanism: DiscreteGaussian | GaussianShare
    code: ShareCode

    @property
    def cost(self) -> int:
        """Price in units of ``2**-50`` rho."""
        return self.mechanism.cost


def whole_release(spec: "AdmmSpec") -> ClientRelease:
    """Return a displacement of the greatest radius."""
    return _whole(DISPLACEMENT, spec.dim, spec.radius, spec.release_units, _packing(spec))


def intercept_release(spec: "AdmmSpec") -> ClientRelease:
    """Return a client's own intercept: one number; its task says how long a grid step is."""
    return _whole(INTERCEPT, 1, spec.radius, spec.intercept_units, _packing(spec))


def planned_release(spec: "AdmmSpec", part: int) -> ClientRelease:
    """Return a displacement of ``part`` 1024ths of the greatest radius."""
    return _planned(spec.dim, spec.radius, spec.release_units, part, _packing(spec))


@dataclass(frozen=True, slots=True)
class _Packing:
    """How a vector is packed: coarsely or not, and of how many clients it may be the sum.

    Under masks it is not packed, and its noise is one of so many ``parts``.
    """

    coarse: bool
    terms: int
    parts: int = 0


def _packing(spec: "AdmmSpec") -> _Packing:
    rules = spec.cohort_rules
    return _Packing(spec.coarse, spec.max_terms, 0 if rules is None else rules.honest)


def _masked(
    kind: str, dim: int, radius: int, units: int, parts: int, *, part: int = 1
) -> ClientRelease:
    """Return a release under masks: words of 64 bits, with one of ``parts`` of the noise."""
    # One unit less: what a sum of discrete Gaussians lacks of one is charged, rounded up.
    whole = DiscreteGaussian.within(units - 1, l2_sensitivity2=4 * radius**2)
    one = GaussianShare.of(whole, parts, dim)
    share = GaussianShare(part**2 * one.sigma2, parts, part**2 * one.l2_sensitivity2, dim)
    return ClientRelease(kind, part * radius, share, ShareCode(dim, 1, 64))


@functools.lru_cache(maxsize=64)
def _whole(kind: str, dim: int, radius: int, units: int, packing: _Packing) -> ClientRelease:
    if packing.parts:
        return _masked(kind, dim, radius, units, packing.parts)
    mechanism = DiscreteGaussian.within(units, l2_sensitivity2=4 * radius**2)
    return ClientRelease(kind, radius, mechanism, _code(dim, radius, mechanism, packing))


@functools.lru_cache(maxsize=2048)
def _planned(dim: int, radius: int, units: int, part: int, packing: _Packing) -> ClientRelease:
    quantum = radius // WHOLE
    if packing.parts:
        return _masked(DISPLACEMENT, dim, quantum, units, packing.parts, part=part)
    one = DiscreteGaussian.within(units, l2_sensitivity2=4 * quantum**2)
    mechanism = DiscreteGaussian(part**2 * one.sigma2, part**2 * one.l2_sensitivity2)
    code = _code(dim, quantum, one, packing)
    code = ShareCode(dim, part * code.step, code.width)
    if not packing.coarse:
        whole = DiscreteGaussian(WHOLE**2 * one.sigma2, WHOLE**2 * one.l2_sensitivity2)
        code = _code(dim, radius, whole, packing)
    return ClientRelease(DISPLACEMENT, part * quantum, mechanism, code)


def _code(dim: int, radius: int, mechanism: DiscreteGaussian, packing: _Packing) -> ShareCode:
    code = ShareCode.bounded(dim, packing.terms * radius, mechanism)
    if packing.coarse:
        return code
    # The same reach, every integer kept.
    return ShareCode(dim, 1, code.width + (code.step - 1).bit_length())
