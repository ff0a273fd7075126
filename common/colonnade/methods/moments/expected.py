"""Which parties' columns a moments job is expected to leave out, before anything is spent.

What a job knows of a column is its product with the label, with an error that follows from public
numbers alone. Products that are hardly larger than their error are shrunk to nothing, and small
ones fall to the penalty.
"""

import math

from colonnade.linear.ball import BALL, OFF_DIAGONAL
from colonnade.methods.base import Part
from colonnade.methods.moments.solver.scales import clipped
from colonnade.methods.moments.spec import GRAM, LABEL, MARGINALS, MomentsSpec

# A column that matters has a correlation of 0.2 to 0.4 with the label. In simulations with 3e3 to
# 1e5 rows, epsilon 0.1 to 3, 4 to 20 columns a party and 60 % to all of the people present, parties
# with a larger error, or under a larger penalty, ended with no column in 3 of 4 runs where the
# strongest correlation was 0.2, and in 1 of 4 where it was 0.45.
_MAX_ERROR, _MAX_PENALTY = 0.2, 0.15


def label_error(spec: MomentsSpec, part: Part) -> float:
    """Return the standard error of a party's correlations with the label, from public numbers."""
    if part.holds_label:
        unit = spec.ball(part) ** 2 / (BALL**2 * spec.n_rows)
        sigma = math.sqrt(spec.made(part, GRAM)[0].sigma2)
        return unit * sigma / OFF_DIAGONAL / spec.label_weight
    owner = next(each for each in spec.parts if each.holds_label)
    label, seen = clipped((1.0,), spec.share_clip), clipped((1.0,), spec.cross_clip)
    energy = float(label.energy[0]) * BALL**2 * spec.n_rows / spec.sketch_dim
    spread = math.sqrt(energy + spec.made(owner, LABEL)[0].sigma2)
    gain = spec.ball(part) * spread / (float(seen.slope[0]) * float(label.slope[0]) * BALL)
    variance = float(seen.energy[0]) / spec.ball(part) ** 2 / spec.n_rows
    variance += spec.made(part, MARGINALS)[0].sigma2 / (spec.n_rows * BALL**2) ** 2
    # Sums over all rows are divided by the number of people whom both parties have.
    in_common = spec.in_common(part.party).get(owner.party) or spec.n_rows
    return gain * math.sqrt(variance) * spec.n_rows / in_common


def expected_idle(spec: MomentsSpec) -> dict[str, float]:
    """Return the parties of which no column is likely to be used, with their error."""
    errors = {part.party: label_error(spec, part) for part in spec.parts}
    penalty = 0.0
    if not spec.shares():  # the penalty then counts in these errors
        penalty = spec.penalty * sum(errors.values()) / len(errors)
    return {
        party: error
        for party, error in errors.items()
        if error > _MAX_ERROR or penalty > _MAX_PENALTY
    }
