"""Choose the numbers of a moments job before any data is read.

Every rule is a function of public counts and the budget. The constants come from simulations with
four shapes of correlation at several sizes and budgets; other seeds were kept for measuring.
"""

import math

from colonnade.methods.base import MAX_TASK_ENTRIES, MethodPlan, planned_parts
from colonnade.methods.groups import moved_or_absent
from colonnade.methods.moments.spec import (
    CROSS,
    GRAM,
    LABEL,
    MARGINALS,
    MEANS,
    SCREEN,
    SHARE,
    MomentsSpec,
)
from colonnade.methods.problem import Labels, Loss, Problem
from colonnade.privacy.accounting import RHO_UNIT, rho_from_units

# Means and mean squares: a noise of this many half ranges is enough; within these parts of the
# budget. Declared bounds are often ten deviations wide, and a variance of 0.01 must stand out.
_MEAN_NOISE = 0.01
_MEAN_PARTS = (0.06, 0.1)
# Gram matrices: an error of a product with the label that is enough; within these parts.
_GRAM_ERROR = 0.015
_GRAM_PARTS = (0.04, 0.25)
# Of what is left: to shared directions, and the rest to inner products with them.
_SHARE_PART = 0.7
# A party with more features is screened; so many are kept, for this part of the budget. Screening
# 25 to 41 columns of 0 and 1 lost up to 0.19 of AUC (adult at two and three parties).
_WIDE = 48
_WIDE_SKETCHED = 24  # a label of many values at one party, whose noise more columns would add up
_KEEP = 12
_SCREEN_PART = 0.12
# A label that one party holds: its sketch, and the others' products with it.
_LABEL_PART = 0.4
_MARGINAL_PART = 0.2
# Rows times the rho of a party's directions: with less, noise hides what they would tell. Between
# 64 (california, adult: sharing does harm) and 105 (made-up columns: it pays) at epsilon 0.5 and 1.
_LEAST_SHARE = 90.0
# The same where people are absent and two directions are probed with themselves alone: between 25
# (california loses .02 to .1) and 48 (made-up columns gain .1; california gains .02 at 54).
_LEAST_ABSENT = 40.0
# The same over all parties where one alone holds the label, whose sketch needs the budget more.
_LEAST_SKETCHED = 480.0
_DIMS = (128, 8192)
# Rows that fall together in a sketch add a tenth to the variance of its noise.
_DIM_OVER_NOISE = 12.0
# The penalty counts in errors of products between parties, which absence makes several times larger
# while products with the label stay as they are.
_ABSENT_PENALTY = 0.12


def recommend(
    problem: Problem,
    *,
    directions: int | None = None,
    probes: int | None = None,
    sketch_dim: int | None = None,
    radius: float | None = None,
    keep: int | None = None,
) -> MethodPlan[MomentsSpec]:
    """Return a plan whose parties together can never spend more than the budget.

    What is given stands; everything else is chosen around it. `ValueError` if nothing fits.
    """
    parties, sketched = len(problem.features), problem.sketched
    kept = _kept(problem) if keep is None else keep
    wide = sum(0 < kept < len(features) for features in problem.features.values())
    units = _split(problem, kept, wide)
    # Products of single features carry too much noise to be worth their part where few are common.
    few = problem.presence and not sketched and units[SHARE] > 0
    count = directions or max(_directions(problem, units[SHARE]), 2 if few else 1)
    spec = MomentsSpec(
        n_rows=problem.n_rows,
        parts=planned_parts(problem),
        mean_units=units[MEANS],
        gram_units=units[GRAM],
        share_units=units[SHARE],
        cross_units=units[CROSS],
        directions=count,
        probes=max(probes or count + (0 if few else 3), count),
        sketch_dim=sketch_dim
        or _dim(problem, max(units[LABEL], units[SHARE]), others=(parties - 1) * count),
        labels=Labels.SKETCHED if sketched else Labels.SHARED,
        loss=problem.loss,
        label_units=units[LABEL],
        marginal_units=units[MARGINALS],
        keep=kept if wide else 0,
        screen_units=units[SCREEN],
        presence=problem.presence,
        overlap=problem.overlap(),
        **({"penalty": _ABSENT_PENALTY} if problem.presence else {}),
        **({} if radius is None else {"radius": radius}),
    )
    details = {
        "rounds": len(spec.stages()),
        "directions": spec.directions if spec.shares() else 0,
        "kept_features": {part.party: spec.kept(part) for part in spec.parts},
    }
    plan = MethodPlan(problem, spec, details)
    if plan.units() > problem.rho_units:
        raise ValueError("the budget is too small for this job")
    return plan


def _split(problem: Problem, kept: int, wide: int) -> dict[str, int]:
    """Return the price of every kind, where ``wide`` parties keep ``kept`` of their features."""
    parties, sketched = len(problem.features), problem.sketched
    units = {
        MEANS: mean_units(problem, noise=_MEAN_NOISE, within=_MEAN_PARTS),
        LABEL: int(problem.rho_units * _LABEL_PART) if sketched else 0,
        MARGINALS: int(problem.rho_units * _MARGINAL_PART) // (parties - 1) if sketched else 0,
        SCREEN: int(problem.rho_units * _SCREEN_PART) // (kept * wide) if wide else 0,
    }
    left = problem.rho_units - units[MEANS] * parties - units[LABEL]
    left -= units[MARGINALS] * (parties - 1) + units[SCREEN] * kept * wide
    units[GRAM] = _gram_units(problem, kept, left)
    left -= units[GRAM] * parties
    units[SHARE] = int(left * _SHARE_PART) // parties
    units[CROSS] = left // parties - units[SHARE]
    few = problem.presence and not sketched
    strength = problem.rows_between * rho_from_units(units[SHARE])
    least = _LEAST_ABSENT if few else _LEAST_SHARE
    if parties == 1 or strength < (_LEAST_SKETCHED / parties if sketched else least):
        units[SHARE] = units[CROSS] = 0
        _spend(units, left, parties, sketched=sketched)
    return units


def _spend(units: dict[str, int], left: int, parties: int, *, sketched: bool) -> None:
    """Spend what sharing would have cost on what is known least: products with the label."""
    if not sketched:
        units[GRAM] += left // parties
        return
    label = int(left * _LABEL_PART / (_LABEL_PART + _MARGINAL_PART))
    units[LABEL] += label
    units[MARGINALS] += (left - label) // (parties - 1)


def mean_units(problem: Problem, *, noise: float, within: tuple[float, float]) -> int:
    """Return a price at which a mean's noise is small enough, within these parts of the budget."""
    count = max(problem.moved(party) for party in problem.features) + 1
    if problem.presence:
        widest = max(len(features) for features in problem.features.values())
        count = moved_or_absent(widest + 2, count)
    wanted = 2.0 * count / (problem.rows_alone * noise) ** 2 * RHO_UNIT
    low, high = (part * problem.rho_units / len(problem.features) for part in within)
    return max(1, int(min(max(wanted, low), high)))


def _gram_units(problem: Problem, keep: int, left: int) -> int:
    """Return a price at which products with the label are known well enough, within limits."""
    widest = max(min(keep or len(f), len(f)) for f in problem.features.values())
    # An error of ball**2 / (weight sqrt(2 rho) n), for the spec's own ball and weight.
    ball2 = 1.6 * (widest + 1.5**2)
    rho = (ball2 / (1.5 * _GRAM_ERROR * problem.rows_alone)) ** 2 / 2.0
    low, high = (part * left / len(problem.features) for part in _GRAM_PARTS)
    return max(1, int(min(max(rho * RHO_UNIT, low), high)))


def _kept(problem: Problem) -> int:
    """Return how many columns wide parties keep; 0 if there is none.

    A category is one feature here: chosen by levels, most of what it says would be left out
    (`docs/concepts/moments.md` has the figures).
    """
    sketched = problem.sketched and problem.loss is Loss.SQUARED
    return _KEEP if problem.widest() > (_WIDE_SKETCHED if sketched else _WIDE) else 0


def _directions(problem: Problem, share: int) -> int:
    """Return how many directions are shared: more where each is seen through less noise."""
    if not share:
        return 1
    strength = rho_from_units(share) * problem.rows_between / 400.0
    wanted = 2.0 * math.pow(strength, 0.5 if strength < 1.0 else 0.25)
    return round(min(max(wanted, 1.0), 6.0))


def _dim(problem: Problem, units: int, *, others: int) -> int:
    """Return a sketch size at which the sketch itself adds little to its noise.

    A task carries the sketches of all ``others``, so many parties make it smaller.
    """
    if not units:
        return 1
    wanted = _DIM_OVER_NOISE * rho_from_units(units) * problem.n_rows
    low, high = _DIMS
    most = min(high, 1 << (problem.n_rows.bit_length() - 1))
    power = max(math.ceil(math.log2(max(wanted, 1.0))), 0)
    dim = min(most, max(low, 1 << power))
    while dim > 1 and dim * others > MAX_TASK_ENTRIES * 9 // 10:
        dim //= 2
    return dim
