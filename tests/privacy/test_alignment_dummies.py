"""The dummies' law, its price, and that what is drawn has that law."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support.alignment import members, prepared, signer
from support.entropy import ShakeNoise, shake

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.methods.alignment.crypto.dummies import (
    PatternDummies,
    first_member,
    patterns_led_by,
)
from colonnade.methods.alignment.crypto.exchange import Unattested
from colonnade.party.methods.alignment.party import AlignmentParty
from colonnade.privacy.accounting import RHO_UNIT
from colonnade.privacy.membership import MembershipNoise

LAW = MembershipNoise.within(1.0, 1e-9)


def pmf(law: MembershipNoise) -> FloatArray:
    """Return the probabilities of 0 .. 2 shift."""
    weights = np.exp(-np.abs(np.arange(-law.shift, law.shift + 1)) / law.scale)
    return np.asarray(weights / weights.sum())


def chi2(drawn: IntArray, law: MembershipNoise) -> tuple[float, int]:
    """Return Pearson's statistic and its degrees of freedom; rare outcomes share two cells."""
    wanted = pmf(law) * drawn.size
    seen = np.bincount(drawn, minlength=wanted.size).astype(float)
    common = np.flatnonzero(wanted >= 10.0)
    # The cells at both ends take the tails along.
    edges = np.concatenate([[0], common[1:], [wanted.size]])
    cells = [
        np.array([each[a:b].sum() for a, b in itertools.pairwise(edges)]) for each in (wanted, seen)
    ]
    return float(((cells[1] - cells[0]) ** 2 / cells[0]).sum()), cells[0].size - 1


def fits(drawn: IntArray, law: MembershipNoise) -> bool:
    # The statistic has mean d and variance about 2 d (4 d with cells of few); six deviations.
    statistic, d = chi2(drawn, law)
    return statistic < d + 6.0 * math.sqrt(4.0 * d)


def halved(law: MembershipNoise) -> MembershipNoise:
    return MembershipNoise(law.scale // 2, law.shift)


def test_what_is_drawn_has_the_law_and_half_the_noise_does_not() -> None:
    noise, zeros = ShakeNoise("law"), np.zeros(20_000, np.int64)
    assert fits(LAW.perturb(zeros, noise), LAW)
    assert not fits(halved(LAW).perturb(zeros, noise), LAW)


def test_noise_is_added_and_never_negative_nor_wide() -> None:
    tight = MembershipNoise(3, 3)  # many draws are rejected
    drawn = tight.perturb(np.full(5000, 100, np.int64), ShakeNoise("tight"))
    assert (int(drawn.min()), int(drawn.max())) == (100, 100 + tight.most)
    assert fits(drawn - 100, tight)


def hockey_stick(law: MembershipNoise, epsilon: float) -> float:
    """Return the exact delta at ``epsilon`` when one count goes up and another down by one."""
    p = pmf(law)
    here, up = np.append(p, 0.0), np.insert(p, 0, 0.0)
    one, other = np.outer(here, up), np.outer(up, here)
    # A ratio of exactly exp(epsilon) is within the bound; what rounding makes of it is not delta.
    return float(np.maximum(one - math.exp(epsilon) * (1 + 1e-12) * other, 0.0).sum())


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-9), (0.5, 1e-6), (2.0, 1e-5), (0.1, 1e-9)])
def test_the_price_is_exact_and_half_the_noise_would_break_it(epsilon: float, delta: float) -> None:
    law = MembershipNoise.within(epsilon, delta)
    assert law.epsilon <= epsilon
    exact = hockey_stick(law, float(law.epsilon))
    assert 0.5 * law.delta < exact <= law.delta * (1 + 1e-9)
    assert law.delta <= delta
    assert law.cost == -(-(law.epsilon.numerator**2) * RHO_UNIT // (2 * law.epsilon.denominator**2))
    if law.scale > 1:
        assert hockey_stick(halved(law), float(law.epsilon)) > 1e3 * delta


def test_the_notes_numbers() -> None:
    assert (LAW.scale, LAW.shift) == (2, 45)
    rows = [LAW.shift * ((1 << n_parties) - 1) for n_parties in (3, 8)]
    assert rows == [315, 11_475]


def test_parties_pay_no_more_than_the_coordinators_view_costs() -> None:
    report = LAW.report()
    length, rows = Fraction(1, LAW.scale), Fraction(1, LAW.phantoms().scale)
    counts = Fraction(report.l1_sensitivity, report.scale)
    assert length + rows + counts == LAW.epsilon
    assert LAW.phantoms().delta <= LAW.delta


def test_sensitivities_are_those_that_the_claim_names() -> None:
    """Add one person to party j's list, whatever else lists that person, and see what moves."""
    n_parties = 4
    rng = np.random.default_rng(0)
    for j, others in itertools.product(range(n_parties), range(1 << n_parties)):
        if others >> j & 1:
            continue
        counts = rng.integers(5, 50, 1 << n_parties)
        counts[0] = 0
        after = counts.copy()
        after[others] -= others > 0
        after[others | 1 << j] += 1

        def views(c: IntArray, j: int = j) -> tuple[int, int, IntArray]:
            length = sum(int(c[p]) for p in range(1 << n_parties) if p >> j & 1)
            # Given the announced length, j's own dummies stand for what is missing in it.
            fixed = c.copy()
            fixed[1 << j] -= length
            return length, int(c.sum()) - length, fixed

        assert np.abs(after - counts).sum() <= 2
        before_views, after_views = views(counts), views(after)
        assert abs(after_views[0] - before_views[0]) == 1
        assert abs(after_views[1] - before_views[1]) <= 1
        moved = int(np.abs(after_views[2] - before_views[2]).sum())
        assert moved <= LAW.report().l1_sensitivity


def test_parties_draw_their_dummies_by_the_law() -> None:
    run = prepared(members([range(3)] * 3), noise=LAW)
    party = AlignmentParty(
        run.spec, "p0", signer("p0"), run.members["p0"].ids, attestor=Unattested()
    )
    noise, entropy, drawn = ShakeNoise("parties"), shake("parties"), []
    for _ in range(250):
        secrets = party.start(noise, entropy).secrets
        assert secrets is not None
        assert [d.pattern for d in secrets.dummies] == [1, 3, 5, 7]
        drawn += [d.count for d in secrets.dummies]
    assert fits(np.array(drawn), LAW)
    assert not fits(np.array(drawn), halved(LAW))
    assert not fits(np.array(drawn), MembershipNoise(2 * LAW.scale, LAW.shift))


def test_the_coordinator_draws_phantoms_and_report_noise_by_their_laws() -> None:
    run = prepared(members([range(3)] * 3), noise=LAW)
    noise, entropy = ShakeNoise("coordinator"), shake("coordinator")
    states = [run.steps.start(noise, entropy) for _ in range(1000)]
    phantoms = np.array([state.phantoms for state in states])
    assert fits(phantoms, LAW.phantoms())
    assert not fits(phantoms, halved(LAW.phantoms()))
    report = np.array([state.report_noise for state in states], float)
    scale = LAW.report().scale
    q = math.exp(-1.0 / scale)
    variance = 2.0 * q / (1.0 - q) ** 2
    # 7000 squares of Laplace numbers (kurtosis 6): relative error sqrt(5 / 7000) = 0.027; x 5.
    assert report.shape == (1000, 7)
    assert abs(float((report**2).mean()) / variance - 1.0) < 0.14


def test_every_set_has_one_first_member_and_every_member_knows_it() -> None:
    for n_parties in (2, 3, 8):
        led = [patterns_led_by(party, n_parties) for party in range(n_parties)]
        assert sorted(itertools.chain(*led)) == list(range(1, 1 << n_parties))
        for party in range(n_parties):
            assert all(first_member(p) == party for p in led[party])


def test_dummies_have_different_ids_that_follow_from_the_seed() -> None:
    made = PatternDummies(5, bytes(32), 4).ids()
    assert len(set(made)) == 4
    assert made == PatternDummies(5, bytes(32), 9).ids()[:4]
    assert not set(made) & set(PatternDummies(5, b"\1" * 32, 4).ids())
    assert all(each.startswith(b"\1") for each in made)


@pytest.mark.parametrize(("scale", "shift"), [(0, 5), (5, 4), (1001, 2000), (1, 10**6)])
def test_laws_out_of_range_are_refused(scale: int, shift: int) -> None:
    with pytest.raises(ValueError, match="dummies need"):
        MembershipNoise(scale, shift)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-9), (1.0, 0.0), (1.0, 1.0)])
def test_prices_out_of_range_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        MembershipNoise.within(epsilon, delta)
