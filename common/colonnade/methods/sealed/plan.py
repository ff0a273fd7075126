"""Choose the numbers of a sealed job before any data is read.

Every rule is a function of public counts and the budget.
"""

import itertools
import math

from colonnade.methods.base import MethodPlan, Part, planned_parts
from colonnade.methods.moments.plan import mean_units
from colonnade.methods.problem import Loss, Problem
from colonnade.methods.sealed.claims import PROMISE
from colonnade.methods.sealed.packing import Layout
from colonnade.methods.sealed.products import Prices, peer_bits
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.privacy.accounting import rho_from_units

# Means: a noise of this many half ranges is enough; within these parts of the budget.
_MEAN_NOISE = 0.006
_MEAN_PARTS = (0.01, 0.3)
# Squared radius of a row's ball over the expected square: smaller where noise dominates, because it
# grows with the ball. By rows times the root of a party's rho, for each of its columns.
_REACHES, _STRENGTHS = (0.6, 1.6), (150.0, 600.0)
# Of what is left at a party: its Gram matrix, and the rest to products between parties.
_GRAM_PART = 0.15
# At a party that is screened: products with the label, the Gram matrix of all features and that of
# kept ones, and the rest to products between parties.
_LABEL_PART, _WIDE_PART, _KEPT_PART = 0.25, 0.2, 0.1
# A party with more features is screened; so many are kept.
_WIDE = 24
_KEEP = 8
# So is one with more than this, where rows are so few that all its columns would drown in noise.
# Not for two classes: products with such a label are weaker, and what they choose is no better.
_WIDE_IN_NOISE = 12
# Fewer send and take less; from 40,000 on, the error of 100,000 rows hardly falls.
BUCKETS = 3 << 14
_MAX_GROUPS = 8
_RADIUS = 2.4
# On the L1 norm, in errors of a product between parties. Of two classes less: what it shrinks is
# calibrated afterwards, and what it drops is lost.
_PENALTIES = {Loss.SQUARED: 2.0, Loss.LOGISTIC: 1.4}
_MAX_HALVINGS = 24
_LANES = (1, 2, 4, 8, 16)


def recommend(
    problem: Problem,
    *,
    buckets: int | None = None,
    radius: float | None = None,
    keep: int | None = None,
) -> MethodPlan[SealedSpec]:
    """Return a plan whose parties together can never spend more than the budget.

    What is given stands; everything else is chosen around it. `ValueError` if nothing fits, or if
    a key would open more than a key may.
    """
    if not problem.sketched:
        raise ValueError("a sealed job is for a label that one of several parties holds")
    parties = len(problem.features)
    shields = tuple(problem.shields.get(party, 0) for party in problem.features)
    kept = _kept(problem) if keep is None else keep
    kept = 0 if any(shields) else kept  # shielded rows are not screened
    parts = planned_parts(problem)
    means = mean_units(problem, noise=_MEAN_NOISE, within=_MEAN_PARTS)
    # A unit for each release, because each one's price is rounded up by itself.
    left = problem.rho_units // parties - means - 2 * parties
    if left < 1:
        raise ValueError("the budget is too small for this job")
    wide = [0 < kept < len(part.features) for part in parts]
    prices = tuple(
        _prices(left, wide=each, opens=part.holds_label and any(wide))
        for part, each in zip(parts, wide, strict=True)
    )
    lanes = _lanes(problem, parts, wide, buckets or BUCKETS)
    error: ValueError | None = None
    # The encryption needs some noise: what more budget would buy beyond that is left unspent.
    for less, groups in itertools.product(range(_MAX_HALVINGS), range(1, _MAX_GROUPS + 1)):
        try:
            spec = SealedSpec(
                n_rows=problem.n_rows,
                parts=parts,
                prices=tuple(each.halved(less) for each in prices),
                mean_units=means,
                buckets=buckets or BUCKETS,
                keep=kept if any(wide) else 0,
                groups=groups,
                label_lanes=lanes,
                loss=problem.loss,
                presence=problem.presence,
                overlap=problem.overlap(),
                reach=_reach(problem, kept),
                shields=shields if any(shields) else (),
                radius=_RADIUS if radius is None else radius,
                penalty=_PENALTIES[problem.loss],
            )
        except ValueError as refused:  # a key that would open too much: try more keys
            error = error or refused
            continue
        plan = MethodPlan(problem, spec, _details(spec))
        if plan.units() > problem.rho_units:
            raise ValueError("the budget is too small for this job")
        return plan
    raise error or ValueError("no plan fits")


def _details(spec: SealedSpec) -> dict[str, object]:
    return {
        "experimental": True,
        "promise": PROMISE,
        "rounds": len(spec.stages()),
        "buckets": spec.buckets if spec.summed else 0,
        "key_groups": spec.groups,
        "kept_features": {part.party: spec.kept(part) for part in spec.parts},
        "peer_bits": {part.party: peer_bits(spec, part) for part in spec.parts},
    }


def _prices(left: int, *, wide: bool, opens: bool) -> Prices:
    """Split what a party has; the label's owner buys openings even if it is not screened."""
    if not wide and not opens:
        gram = int(left * _GRAM_PART)
        return Prices(max(1, gram), max(1, left - gram))
    label, kept = int(left * _LABEL_PART), int(left * _KEPT_PART)
    if not wide:
        kept = int((left - label) * _GRAM_PART)
        return Prices(max(1, kept), max(1, left - label - kept), label=max(1, label))
    own = int(left * _WIDE_PART)
    cross = left - label - own - kept
    return Prices(max(1, kept), max(1, cross), wide=max(1, own), label=max(1, label))


def _reach(problem: Problem, kept: int) -> float:
    """Return how far rows may reach before they are drawn into the ball."""
    strength = _strength(problem, kept)
    (low, high), (weak, strong) = _REACHES, _STRENGTHS
    part = math.log(max(strength, 1e-9) / weak) / math.log(strong / weak)
    return float(low * (high / low) ** min(max(part, 0.0), 1.0))


def _strength(problem: Problem, kept: int) -> float:
    """Return rows times the root of a party's rho, for each column of the widest party."""
    widest = max(min(kept or len(each), len(each)) for each in problem.features.values()) + 1
    rho = rho_from_units(problem.rho_units) / len(problem.features)
    return problem.rows_between * math.sqrt(rho) / widest


def _kept(problem: Problem) -> int:
    """Return how many features wide parties keep; 0 if there is none."""
    noisy = _strength(problem, 0) < _STRENGTHS[0] and problem.loss is Loss.SQUARED
    widest = max(map(len, problem.features.values()))
    return _KEEP if widest > (_WIDE_IN_NOISE if noisy else _WIDE) else 0


def _lanes(problem: Problem, parts: tuple[Part, ...], wide: list[bool], buckets: int) -> int:
    """Return how many columns a reply to the sealed label holds: what sends least at the most.

    More lanes make the sealed label larger and the replies to it smaller.
    """
    rows = min(problem.n_rows, buckets)
    widest = max((len(p.features) for p, w in zip(parts, wide, strict=True) if w), default=1)

    def most(lanes: int) -> int:
        layout = Layout(rows, 1, lanes)
        return max(sum(layout.sealed_bytes()), layout.reply_bytes(widest))

    return min(_LANES, key=most)
