"""A price whose noise could not be drawn is refused before anything is set aside or charged."""

from collections.abc import Callable

import numpy as np
import pytest
from support.desk import Desk
from support.federation import NAMES, founded, make_moments_job
from support.ledgers import spending
from support.specs import OpenSpec
from support.vaults import ledger_of, vault_of

from colonnade.client import JobOptions
from colonnade.client.planning import plan_of
from colonnade.core.errors import BadInput
from colonnade.methods.job import job_id
from colonnade.privacy.accounting import units_down
from colonnade.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Mechanism,
    SignedSelection,
    record_of,
)
from colonnade.privacy.records import mechanism_from_record
from colonnade.privacy.sampling import OsNoise
from colonnade.wire.jobspec import job_to_bytes

WIDEST: list[Mechanism] = [
    DiscreteGaussian(2**108, 1),
    DiscreteLaplace(2**54, 1),
    SignedSelection(2**62, 1),
]
TOO_WIDE: list[Callable[[], Mechanism]] = [
    lambda: DiscreteGaussian(2**108 + 1, 1),
    lambda: DiscreteGaussian.within(1, l2_sensitivity2=2**60),
    lambda: DiscreteLaplace(2**54 + 1, 1),
    lambda: SignedSelection(2**62 + 1, 1),
    lambda: SignedSelection(2**2000, 1),
]


@pytest.mark.parametrize("mechanism", WIDEST)
def test_the_widest_noise_that_can_be_paid_for_can_be_drawn(mechanism: Mechanism) -> None:
    value = np.array([2**58, -(2**58)], np.int64)
    assert mechanism.perturb(value, OsNoise()).shape == (2,)
    assert mechanism_from_record(record_of(mechanism)) == mechanism


@pytest.mark.parametrize("make", TOO_WIDE)
def test_wider_noise_is_not_made(make: Callable[[], Mechanism]) -> None:
    with pytest.raises(ValueError, match="little"):
        make()


def test_an_entry_with_wider_noise_is_no_entry() -> None:
    with pytest.raises(ValueError, match="little"):
        mechanism_from_record(
            {"mechanism": "discrete_gaussian", "sigma2": 2**200, "l2_sensitivity2": 1}
        )


def hostile_spec() -> bytes:
    """Return a job whose Gram matrices cost one unit: their noise would pass 2**54."""
    spec = OpenSpec.of(job_to_bytes(make_moments_job(founded(), NAMES[:2])))
    spec.method.gram_units = 1
    return spec.to_bytes()


def test_a_party_refuses_such_a_job_and_sets_nothing_aside() -> None:
    ledger = ledger_of(units_down(2.0))
    before = spending(ledger)
    decision = vault_of(ledger).consider(hostile_spec())
    assert not decision.accepted
    assert decision.code == "bad_message"
    assert spending(ledger) == before


def test_a_coordinator_refuses_such_a_job() -> None:
    desk = Desk(*NAMES[:2])
    desk.refused(BadInput, "cannot cost so little", desk.engine.submit, hostile_spec(), "operator")
    assert job_id(hostile_spec()) not in desk.engine.runs


def test_no_plan_has_such_a_price() -> None:
    features = dict.fromkeys(NAMES[:2], ("a", "b"))
    with pytest.raises(BadInput, match="little"):
        plan_of(JobOptions(method="moments"), features, n_rows=100, units=300, owner=None)
