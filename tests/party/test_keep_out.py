"""People whom a job keeps out of its fit: no method sees their rows, and all agree on who."""

import numpy as np
import pytest
from support.federation import founded
from support.vaults import ME, ledger_of, vault_of

from colonnade.client.builder import build_job
from colonnade.client.options import JobOptions
from colonnade.client.views import PartyOffer
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadMessage
from colonnade.core.fixedpoint import Bounds
from colonnade.methods.base import Unit
from colonnade.methods.holdout import held_out, rows_fitted
from colonnade.methods.job import Job
from colonnade.party.data.columns import ColumnCache
from colonnade.party.data.dataset import open_dataset
from colonnade.privacy.accounting import RHO_UNIT, rho_of, units_down
from colonnade.v1 import job_pb2
from colonnade.wire.jobspec import job_from_bytes, job_to_bytes


def job_of(options: JobOptions) -> Job:
    """Return a job on the one party's table, as an operator would write it."""
    vault = vault_of(ledger_of(RHO_UNIT))
    offer = vault.hello().offer
    features = {each.name: Bounds(each.low, each.high) for each in offer.features}
    shown = PartyOffer(
        party=ME,
        attached=True,
        dataset=offer.dataset,
        population=offer.population,
        features=features,
        fills={each.name: each.fill for each in offer.features},
        label=(offer.label.name, Bounds(offer.label.low, offer.label.high)),
        cap_units=RHO_UNIT,
        used_units=0,
        unit=Unit.RECORD,
    )
    return build_job([shown], options, target=offer.label.name)


def test_columns_of_a_job_are_without_the_rows_that_it_keeps_out() -> None:
    with open_dataset(founded().folder / ME / "data") as dataset:
        table, cache = dataset.coarse, ColumnCache(dataset.coarse, dataset.fine)
        kept = ~held_out(table.n_rows, 300)
        label = table.header.label
        assert label is not None
        for bounds in (
            table.bounds,
            [Bounds(each.low / 2, each.high / 2) for each in table.bounds],
        ):
            asked = (table.names, bounds, (label.name, label.bounds))
            whole, fewer = cache.of_job(*asked), cache.of_job(*asked, holdout=300)
            assert np.array_equal(fewer.features, whole.features[:, kept])
            assert whole.label is not None
            assert fewer.label is not None
            assert np.array_equal(fewer.label, whole.label[kept])
        assert 0.2 < 1.0 - kept.mean() < 0.4


@pytest.mark.parametrize("method", ["moments", "frank-wolfe"])
def test_a_party_fits_the_others_only_and_refuses_another_count(method: str) -> None:
    job = job_of(JobOptions(method=method, epsilon=0.5, evaluate=0.1))
    with open_dataset(founded().folder / ME / "data") as dataset:
        n_rows = dataset.coarse.n_rows
    assert job.holdout == 200
    assert job.population == rows_fitted(n_rows, 200) < n_rows
    spec = job_to_bytes(job)
    assert job_from_bytes(spec) == job
    ledger = ledger_of(RHO_UNIT)
    vault = vault_of(ledger)
    decision = vault.consider(spec)
    assert decision.accepted, decision.message
    message = job_pb2.JobSpec.FromString(spec)
    for wrong in (0, 100):  # of another part of the people, the population is another
        message.holdout = wrong
        refused = vault_of(ledger_of(RHO_UNIT)).consider(message.SerializeToString())
        assert refused.code == BadMessage.code


def test_what_is_left_for_an_evaluation_is_not_spent_on_the_fit() -> None:
    plain, less = (
        job_of(JobOptions(epsilon=1.0, evaluate=each, keep_out=0.2)) for each in (None, 0.5)
    )
    assert plain.holdout == less.holdout == 200
    whole = units_down(rho_of(1.0, plain.delta))
    for job in (plain, less):
        assert job.method.max_units(ME) + job.units_kept(ME) == job.max_units(ME) <= whole
    assert less.units_kept(ME) > plain.units_kept(ME) == 0
    assert less.method.max_units(ME) < plain.method.max_units(ME)
    for wrong in ({"evaluate": 1.0}, {"evaluate": -1.0}, {"keep_out": 0.6}, {"keep_out": -0.1}):
        with pytest.raises(BadArgument):
            job_of(JobOptions(epsilon=1.0, **wrong))  # type: ignore[arg-type]
