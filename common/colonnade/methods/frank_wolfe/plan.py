"""Choose the numbers of a vertical Frank-Wolfe job before any data is read.

Every rule is a function of public counts, the budget and one expectation: how much columns of
different parties are correlated. The constants come from simulations at several sizes, budgets and
shapes of correlation (``colonnade bench vertical`` repeats some of them with other seeds).
"""

import math
from dataclasses import replace

from colonnade.core.fixedpoint import GRID
from colonnade.methods.base import MethodPlan
from colonnade.methods.column_moments import clipped_normal
from colonnade.methods.frank_wolfe.residual import SCORE_SENSITIVITY
from colonnade.methods.frank_wolfe.spec import (
    LOCAL_DISCOUNT,
    Block,
    FrankWolfeSpec,
    PartySampling,
)
from colonnade.methods.problem import Labels, Loss, Problem
from colonnade.privacy.accounting import RHO_UNIT, rho_from_units

# Features that a sharing party shares: few with little noise beat many with much.
_SHARES = 3
_SHARE_PART = 0.45
_LABEL_PART = 0.45
_SHARE_CLIP = 0.7
# Means: a noise of this many half ranges is enough; never more than this part of the budget.
_MEAN_NOISE = 0.01
_MEAN_PARTS = (0.01, 0.06)
_MAX_DIM = 4096


def recommend(
    problem: Problem,
    *,
    rounds: int | None = None,
    shares: int | None = None,
    sketch_dim: int | None = None,
    radius: float | None = None,
    sampling: str | None = None,
    parties_per_round: int | None = None,
    features_per_round: int | None = None,
) -> MethodPlan[FrankWolfeSpec]:
    """Return a plan whose parties together can never spend more than the budget.

    What is given stands; everything else is chosen around it. `ValueError` if nothing fits.
    """
    how = PartySampling(sampling or PartySampling.ALL.value)
    count = _share_count(problem) if shares is None else shares
    blocks = _blocks(problem, shares=count, radius=radius)
    count = max(block.shares for block in blocks)
    means = _mean_units(problem)
    label = int(problem.rho_units * _LABEL_PART) if problem.sketched else 0
    left = problem.rho_units - means * len(blocks) - label
    total_shares = sum(block.shares for block in blocks)
    share = int(left * _SHARE_PART) // total_shares if total_shares else 0
    left -= share * total_shares
    local, after = _rounds(problem, left, sharing=count > 0)
    if how is PartySampling.SERIAL:
        local, after = local * len(blocks), after * len(blocks)
    if rounds is not None:
        local, after = (rounds // 2, rounds - rounds // 2) if count else (0, rounds)
    spec = FrankWolfeSpec(
        n_rows=problem.n_rows,
        blocks=blocks,
        rounds=local + after,
        sketch_dim=sketch_dim or _dim(problem, share, label),
        sketch_entries=1,
        select_units=problem.rho_units,  # replaced below, when the number of choices is known
        share_units=share,
        label_units=label,
        labels=Labels.SKETCHED if problem.sketched else Labels.SHARED,
        loss=problem.loss,
        sampling=how,
        parties_per_round=parties_per_round or (len(blocks) + 1) // 2,
        features_per_round=features_per_round or 0,
        prior=min(max(problem.expected**2 / 2.0, 0.01), 0.1),
        mean_units=means,
        share_clip=_SHARE_CLIP,
        local_rounds=local,
    )
    rounds_of = [round_ for block in blocks for round_ in spec.choosing_rounds(block.party)]
    cheap = sum(spec.select_price(round_) < spec.select_units for round_ in rounds_of)
    select = left * LOCAL_DISCOUNT // (LOCAL_DISCOUNT * (len(rounds_of) - cheap) + cheap)
    if select < LOCAL_DISCOUNT:
        raise ValueError("the budget is too small for that many rounds and shares")
    spec = replace(spec, select_units=select)
    details = {
        "local_rounds": spec.local_rounds,
        "shares": {block.party: block.shares for block in spec.blocks},
        "sketch_entries": spec.sketch_entries,
        "radius": {block.party: block.radius for block in spec.blocks},
        "expected_correlation": problem.expected,
        "noise": noise_of(spec),
    }
    return MethodPlan(problem, spec, details)


def noise_of(spec: FrankWolfeSpec) -> dict[str, float]:
    """Return the noise of each kind relative to what it blurs.

    ``mean``: standard deviation of a mean in half ranges. ``select``: scale of a choice's noise as
    a correlation, for a column and a residual with deviations of 0.4. ``share`` and ``label``:
    standard deviation of the correlation that one column has with a shared one.
    """
    n, sketch = spec.n_rows, spec.sketch("")
    found = {}
    if spec.mean_units:
        block = max(spec.blocks, key=lambda block: len(block.features))
        found["mean"] = math.sqrt(spec.means(block)[0].sigma2) / (n * GRID)
    found["select"] = spec.selection(spec.rounds).scale / (n * SCORE_SENSITIVITY / 2) / 0.4
    energy, _ = _clipped()
    for kind, count, units in (
        ("share", sum(block.shares for block in spec.blocks), spec.share_units),
        ("label", spec.labels is Labels.SKETCHED, spec.label_units),
    ):
        if count:
            blur = 2.0 / (rho_from_units(units) * n * energy)
            found[kind] = math.sqrt(blur + 1.0 / sketch.dim)
    return found


def _clipped() -> tuple[float, float]:
    """Return energy of a shared column that serves correlations, and its plain energy."""
    variance, covariance = clipped_normal(_SHARE_CLIP)
    return covariance**2, variance


def _blocks(problem: Problem, *, shares: int, radius: float | None) -> tuple[Block, ...]:
    parties = len(problem.features)
    # In deviations of the label for each of a feature: what a party that holds half of a sparse
    # model needs. The logistic loss counts in logits, which are twice the surrogate's.
    usual = max(0.5, min(3.0, 4.8 / parties))
    if problem.loss is Loss.LOGISTIC:
        usual *= 1.3
    if problem.sketched:  # all but the owner see the label through noise
        usual *= 0.5
    # Where choices are mostly noise, a smaller model does less harm.
    usual *= min(1.0, math.sqrt(_strength(problem, problem.rho_units)))
    return tuple(
        Block(
            party=party,
            features=tuple(features),
            radius=usual if radius is None else radius,
            shares=min(shares, len(features)) if parties > 1 else 0,
            holds_label=not problem.sketched or party == problem.label_owner,
            groups=tuple(problem.groups.get(party, ())),
        )
        for party, features in problem.features.items()
    )


def _mean_units(problem: Problem) -> int:
    """Return a price at which a mean is known well enough, within limits."""
    parties = len(problem.features)
    count = max(problem.moved(party) for party in problem.features) + 1
    wanted = 2.0 * count / (problem.n_rows * _MEAN_NOISE) ** 2 * RHO_UNIT
    low, high = (part * problem.rho_units / parties for part in _MEAN_PARTS)
    return max(1, int(min(max(wanted, low), high)))


def _share_count(problem: Problem) -> int:
    """Return how many features each party shares: 0 where sharing would hurt.

    Without sharing, parties fit what they have in common once each: a loss of R2 of about
    ``3 (K - 1) r**2``, measured from r = 0.1 to 0.3. Sharing costs budget and lets noise in: a
    loss of about ``0.25 (e / 0.44) ** 0.25`` with ``e`` the noise of a squared correlation; above
    1 a sketch says nothing.
    """
    parties = len(problem.features)
    if parties == 1:
        return 0
    rho = rho_from_units(problem.rho_units) * _SHARE_PART / (parties * _SHARES)
    blur = 2.0 / (rho * problem.n_rows * _clipped()[0])
    alone = 3.0 * (parties - 1) * problem.expected**2
    return _SHARES if blur < 1.0 and alone > 0.25 * (blur / 0.44) ** 0.25 else 0


def _strength(problem: Problem, units: int) -> float:
    """Return how far a correlation of about 0.1 stands out of the noise of one single choice."""
    widest = max(map(len, problem.features.values()))
    epsilon = math.sqrt(8.0 * rho_from_units(max(units, 1)) / len(problem.features))
    return 0.02 * problem.n_rows * epsilon / (4.0 * math.log(2.0 * widest + 1.0))


def _rounds(problem: Problem, units: int, *, sharing: bool) -> tuple[int, int]:
    """Return local and other rounds, from how far a choice stands out of its noise."""
    strength = _strength(problem, units) * (0.1 if problem.sketched else 1.0)
    if sharing:
        after = round(min(max(10.0 * strength**0.25, 8.0), 40.0))
        return after, after
    return 0, round(min(max(16.0 * strength ** (1.0 / 3.0), 6.0), 64.0))


def _dim(problem: Problem, share: int, label: int) -> int:
    """Return a sketch size at which the sketch itself adds little to its noise."""
    best = rho_from_units(max(share, label))
    if best == 0.0:
        return 1
    wanted = 8.0 * best * problem.n_rows * _clipped()[0]
    most = min(_MAX_DIM, 1 << (problem.n_rows.bit_length() - 1))
    return min(most, max(128, 1 << math.ceil(math.log2(max(wanted, 1.0)))))
