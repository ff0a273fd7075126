"""Products of columns, decoded from the releases of a sealed job, in standard deviations.

Columns are scaled by their released deviations. What the ball of rows leaves of them is read off a
party's own Gram matrix; what the ball of buckets leaves follows from public constants.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.ball import BALL, DIAGONAL, OFF_DIAGONAL
from colonnade.linear.gram import floored
from colonnade.methods.base import Part
from colonnade.methods.moments.solver.directions import spans_of
from colonnade.methods.moments.solver.estimates import level_of
from colonnade.methods.moments.solver.people import people, present
from colonnade.methods.moments.solver.scales import Scales, clipped
from colonnade.methods.sealed.kinds import (
    GRAM,
    LABEL,
    MEANS,
    OPEN,
    PRODUCTS,
    REPLY,
    SCREEN,
    SEAL,
    WIDE,
    numbered,
)
from colonnade.methods.sealed.rounds import turns
from colonnade.methods.sealed.solver.spreads import Spread, mean_noise, spread_of, uncertain
from colonnade.methods.sealed.spec import SealedSpec

_FLOOR = 0.02

Bodies = Mapping[str, Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class OwnGram:
    """A party's own products; the label's column, where it is held, is the last, with its weight.

    In standard deviations that the ball has left: ``level`` is what it leaves of a variance.
    """

    gram: FloatArray
    level: float
    error: float  # of an entry off the diagonal


def own_gram(spec: SealedSpec, part: Part, bodies: Bodies, *, wide: bool = False) -> OwnGram:
    """Decode a party's Gram matrix: of kept features, or of all with ``wide``."""
    kind = WIDE if wide else GRAM
    mechanism, code = spec.made(part, kind)
    size = spec.n_wide(part) if wide else spec.n_gram(part)
    ball = spec.rows(kind, part).ball
    upper = np.triu_indices(size)
    weights = np.where(upper[0] == upper[1], DIAGONAL, OFF_DIAGONAL)
    unit = ball**2 / (BALL**2 * present(spec, part, bodies))
    gram = np.zeros((size, size))
    gram[upper] = code.decode(bodies[part.party][kind]) * unit / weights
    gram = gram + np.triu(gram, 1).T
    noise = unit * mechanism.sigma2**0.5
    level = level_of(np.diag(gram)[: size - part.holds_label], noise / DIAGONAL)
    return OwnGram(gram / level, level, noise / OFF_DIAGONAL / level)


def spread_gram(spec: SealedSpec, part: Part, bodies: Bodies) -> tuple[OwnGram, Spread]:
    """Return a party's products in released deviations, whatever these are, and its spread."""
    own, count = own_gram(spec, part, bodies), spec.kept(part)
    seen = np.diag(own.gram) * own.level
    mechanism, _ = spec.made(part, MEANS)
    noise = mean_noise(mechanism.sigma2, present(spec, part, bodies))
    scales, label = Scales.of(spec, bodies), (0.0, 0.0, 0.0)
    if part.holds_label:
        error = uncertain(noise, np.array([scales.label_deviation]))
        label = spec.label_weight, float(seen[-1]), error
    spread = spread_of(
        seen[:count],
        spec.rows(GRAM, part).ball,
        uncertain=uncertain(noise, scales.features[part.party].deviation),
        label=label,
    )
    again = own.level / spread.level
    return OwnGram(own.gram * again, spread.level, own.error * again), spread


def gain(spec: SealedSpec, base: str, part: Part, share: float = 1.0) -> float:
    """Return what the ball of buckets leaves of a column: 1 if rows are as they were.

    ``share`` is the part of the rows that are people whom the party has.
    """
    rows = spec.rows(base, part)
    if not spec.summed and not rows.shield:
        return 1.0
    share *= rows.together
    weights = tuple(math.sqrt(weight**2 * share + rows.noise**2) for weight in rows.weights)
    # A public constant from made-up normal rows; the first coordinate is no weighted label.
    return float(clipped(weights, rows.spread).slope[0]) * rows.spread


def products(
    spec: SealedSpec, sealer: Part, multiplier: Part, bodies: Bodies, *, label: bool = False
) -> tuple[FloatArray, float]:
    """Return products of the multiplier's columns with the sealer's, per row, and their error.

    Shape ``(multiplier's columns, sealer's columns)``, before what rows' balls left is made up.
    """
    opens, seals, replies = (SCREEN, LABEL, PRODUCTS) if label else (OPEN, SEAL, REPLY)
    kind = numbered(opens, spec.place(multiplier.party))
    code = spec.opening_code(kind, sealer)
    found = code.decode(bodies[sealer.party][kind]).astype(np.float64)
    one, two = spec.place(sealer.party), spec.place(multiplier.party)
    known = people(spec, bodies)
    own, other, joint = (float(known[at]) for at in ((one, one), (two, two), (one, two)))
    # Steps that a standard deviation of a row has.
    steps = spec.rows(seals, sealer).unit * spec.rows(replies, multiplier).unit
    clip = gain(spec, seals, sealer, own / spec.n_rows)
    clip *= gain(spec, replies, multiplier, other / spec.n_rows)
    unit = 1.0 / (joint * steps * clip)
    reply = numbered(replies, spec.place(sealer.party))
    noise2 = spec.sigma2(kind, sealer) + spec.sigma2(reply, multiplier)
    shared = own * other / (spec.buckets * joint**2) if spec.summed else 0.0
    # What shields leave in a sum of products: noise is on every bucket, people are in some rows.
    mine, theirs = spec.rows(seals, sealer).noise ** 2, spec.rows(replies, multiplier).noise ** 2
    left = own * theirs + other * mine + min(spec.n_rows, spec.buckets) * mine * theirs
    shared += left / joint**2
    columns = spec.product(kind, sealer).layout.columns
    return found.reshape(-1, columns) * unit, math.sqrt(noise2 * unit**2 + shared)


@dataclass(frozen=True, slots=True)
class SealedEstimate:
    """All kept features of all parties together."""

    gram: FloatArray
    target: FloatArray
    error: float  # of a product between parties, on average
    errors: FloatArray  # of each entry of the Gram matrix, and last those of the target


def estimate(spec: SealedSpec, bodies: Bodies) -> SealedEstimate:
    """Join all blocks; eigenvalues are raised to what noise alone would have."""
    told = [spread_gram(spec, part, bodies) for part in spec.parts]
    own = [each for each, _ in told]
    spans = spans_of([len(each.gram) for each in own])
    whole, errors = (np.zeros((spans[-1].stop, spans[-1].stop)) for _ in range(2))
    between = []
    for span, each in zip(spans, own, strict=True):
        whole[span, span], errors[span, span] = each.gram, each.error
    for sealer, multiplier in itertools.combinations(turns(spec), 2):
        one, two = spec.place(sealer.party), spec.place(multiplier.party)
        found, error = products(spec, sealer, multiplier, bodies)
        level = math.sqrt(own[one].level * own[two].level)
        whole[spans[two], spans[one]] = found / level
        whole[spans[one], spans[two]] = found.T / level
        errors[spans[two], spans[one]] = errors[spans[one], spans[two]] = error / level
        between.append(error / level)
    label = spans[spec.place(spec.owner.party)].stop - 1
    features = [place for place in range(len(whole)) if place != label]
    error = float(np.mean(between))
    least = max(_FLOOR, error * math.sqrt(len(features)))
    _, seen = told[spec.place(spec.owner.party)]
    # The ball leaves less of the label than of features, which weigh less.
    unit = math.sqrt(seen.level / seen.label_level) / (spec.label_weight * seen.label)
    return SealedEstimate(
        gram=floored(whole[np.ix_(features, features)], least),
        target=whole[features, label] * unit,
        error=error,
        errors=np.vstack([errors[np.ix_(features, features)], errors[label, features] * unit]),
    )
