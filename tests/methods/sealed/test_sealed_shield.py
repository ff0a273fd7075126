"""A shield: noise on a party's buckets, once, before they are sealed or multiplied."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.entropy import ShakeNoise
from support.sealed import JOB, before, problem_of, request_of, small_data

from colonnade.core.errors import BadMessage, BudgetExceeded, RequestConflict
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.export import export_lines, verify_export
from colonnade.linear.ball import BALL
from colonnade.methods.sealed.kinds import SEAL, SHIELD, SealedStage
from colonnade.methods.sealed.plan import recommend
from colonnade.methods.sealed.rows import SHIELD_UNIT
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.party.methods.sealed import SealedParty
from colonnade.party.sealed.policy import SealedGrant
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.ring_noise import HOSTILE
from colonnade.simulate.inprocess.sealed import parties, run

DATA = small_data()
UNITS = units_down(rho_of(28.0, 1e-6))


def shielded(*names: str) -> SealedSpec:
    problem = replace(problem_of(DATA), shields=dict.fromkeys(names, UNITS))
    return replace(recommend(problem).spec, buckets=2048)


SPEC = shielded("p0", "p1", "p2")
SEAL_ROUND = SPEC.round_of(SealedStage.SEAL)
KEY = ReleaseKey(JOB, SEAL_ROUND, SHIELD, HOSTILE)


def noise_on(member: SealedParty, sums: np.ndarray) -> np.ndarray:
    stored = member.ledger.stored(KEY)
    assert stored is not None
    noisy = np.frombuffer(stored.body, "<i2").astype(np.int64) * SHIELD_UNIT
    left: np.ndarray = noisy - sums.ravel()
    return left


def test_every_party_pays_once_from_its_hostile_account_and_the_export_verifies() -> None:
    _, members = run(DATA, SPEC, ShakeNoise("shield"), job=JOB)
    for name, member in members.items():
        shield = SPEC.shield(SPEC.part(name))
        assert shield is not None
        assert member.ledger.budget(HOSTILE).spent == shield.cost <= UNITS
        assert member.ledger.budget().spent == SPEC.max_units(name)  # its own account, as without
        found = verify_export(export_lines(member.ledger))
        assert {each.name: each.spent for each in found.accounts}[HOSTILE] == shield.cost


def test_the_stored_buckets_carry_the_noise_that_was_paid_for() -> None:
    members = parties(DATA, SPEC, JOB, ShakeNoise("variance"))
    _, tasks = before(members, SPEC, SEAL_ROUND)
    member, task = members["p1"], tasks["p1"]
    member.answer(task, request_of(task))
    noise, shield = (
        noise_on(member, member.rows.sums(SEAL, task.projection)),
        SPEC.shield(member.part),
    )
    assert shield is not None
    # The mean square of 4096 Gaussians errs by sqrt(2 / 4096) = 2.2 % of itself; rounding to units
    # of 16 steps adds 21 to a variance of millions. Half the noise would be 75 % less.
    assert float(np.mean(noise**2.0)) / shield.sigma2 == pytest.approx(1.0, abs=5 * 0.022)
    assert shield.cost == -(-shield.l2_sensitivity2 * 2**50 // (2 * shield.sigma2))


def test_a_replaced_row_moves_the_buckets_by_no_more_than_the_shield_is_priced_for() -> None:
    scale, shield = SPEC.rows(SEAL, SPEC.part("p1")).scale, SPEC.shield(SPEC.part("p1"))
    assert shield is not None
    rows = np.zeros((3, DATA.label.size), np.int16)
    one, two = rows.copy(), rows.copy()
    one[0, 77], two[0, 77] = BALL, -BALL  # opposite ends of the ball: the furthest that a row moves
    moved = scale.sums(one, b"seed") - scale.sums(two, b"seed")
    assert float((moved**2.0).sum()) == shield.l2_sensitivity2


def test_what_is_sealed_and_what_is_multiplied_are_the_same_noisy_rows() -> None:
    members = parties(DATA, SPEC, JOB, ShakeNoise("same"))
    reply = SPEC.round_of(SealedStage.REPLY)
    _, tasks = before(members, SPEC, reply)
    member = members["p1"]
    sealed = member.rows.steps(SEAL, None, member.ledger)
    multiplied = member.rows.steps("reply", tasks["p1"].projection, member.ledger)
    assert np.array_equal(sealed, multiplied)
    spent = member.ledger.budget(HOSTILE).spent
    member.answer(tasks["p1"], request_of(tasks["p1"]))
    assert member.ledger.budget(HOSTILE).spent == spent


@pytest.mark.parametrize("spoil", [lambda b: b[:-1] + bytes([b[-1] ^ 1]), lambda b: b[1:]])
def test_a_forged_body_charges_no_shield(spoil: Callable[[bytes], bytes]) -> None:
    # A coordinator that asks for products first: the shield would be put now.
    members = parties(DATA, SPEC, JOB, ShakeNoise("forged"))
    _, tasks = before(members, SPEC, SPEC.round_of(SealedStage.REPLY))
    task = tasks["p2"]
    fresh = parties(DATA, SPEC, JOB, ShakeNoise("fresh"))["p2"]
    member = replace(fresh, peers=members["p2"].peers)
    first, *others = task.relayed
    forged = replace(task, relayed=(replace(first, body=spoil(first.body)), *others))
    head = member.ledger.head
    with pytest.raises(BadMessage):
        member.answer(forged, request_of(task))
    assert member.ledger.head == head
    assert member.ledger.budget(HOSTILE).spent == 0
    member.answer(task, request_of(task))  # what is right is shielded, and pays
    assert member.ledger.budget(HOSTILE).spent > 0


def test_another_projection_is_refused_before_a_reply_is_charged() -> None:
    members = parties(DATA, SPEC, JOB, ShakeNoise("other"))
    _, tasks = before(members, SPEC, SPEC.round_of(SealedStage.REPLY))
    member, task = members["p2"], tasks["p2"]
    assert task.projection is not None
    other = replace(task.projection, coef=task.projection.coef + 1)
    head = member.ledger.head
    with pytest.raises(RequestConflict):
        member.answer(replace(task, projection=other), b"r")
    assert member.ledger.head == head


def test_rows_without_their_shield_are_neither_sealed_nor_multiplied() -> None:
    members = parties(DATA, SPEC, JOB, ShakeNoise("bare"))
    _, tasks = before(members, SPEC, SEAL_ROUND)
    member = members["p1"]
    for base in (SEAL, "reply"):
        with pytest.raises(ValueError, match="before their shield"):
            member.rows.steps(base, tasks["p1"].projection, member.ledger)


def test_a_hostile_account_that_is_spent_ends_shields() -> None:
    members = parties(DATA, SPEC, JOB, ShakeNoise("spent"))
    ledger = members["p0"].ledger
    left = ledger.budget(HOSTILE).remaining - ledger.state.reserved[HOSTILE]
    with pytest.raises(BudgetExceeded, match="hostile"):
        ledger.admit("another", units=left + 1, account=HOSTILE)


def test_a_policy_that_asks_for_a_shield_takes_no_job_without_or_with_a_weaker_one() -> None:
    pins = {name: bytes(32) for name in ("p0", "p2")}
    grant = SealedGrant(pins, columns=9, shield_units=UNITS)
    assert grant.objection(SPEC, "p1") is None
    assert "shielded" in (grant.objection(shielded("p0", "p2"), "p1") or "")
    weaker = replace(SPEC, shields=(2 * UNITS,) * 3)
    assert "shielded" in (grant.objection(weaker, "p1") or "")
    assert SealedGrant(pins, columns=9).objection(SPEC, "p1") is None


def test_shields_and_screening_do_not_go_together() -> None:
    wide = small_data((30, 2, 4))
    problem = replace(problem_of(wide), shields={"p1": UNITS})
    assert recommend(problem).spec.keep == 0
    with pytest.raises(ValueError, match="not screened"):
        replace(recommend(problem_of(wide)).spec, shields=(0, UNITS, 0))
