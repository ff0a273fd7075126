"""What an officer reads of a sealed job: what peers may do, and a job that has no place for it."""

from pathlib import Path

import pytest
from support.federation import NAMES, founded, make_sealed_job
from support.ledgers import new_ledger

from colonnade.core.errors import BadMessage, ColonnadeError, PolicyRefused
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.ledger.storage.snapshot import read_snapshot
from colonnade.methods.job import Job, job_id
from colonnade.methods.sealed.claims import PROMISE
from colonnade.methods.sealed.products import peer_bits
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.party.officer.case import Case
from colonnade.party.officer.proposals import Proposals
from colonnade.party.officer.reading import cases
from colonnade.pki.identity import Identity
from colonnade.privacy.accounting import format_units, rho_of, units_down
from colonnade.wire.jobspec import job_to_bytes

HUB = Identity("study", "coordinator", "hub")
UNITS, SHIELD = units_down(0.5), units_down(rho_of(28.0, 1e-6))


@pytest.fixture(scope="module")
def plain() -> Job:
    return make_sealed_job(founded(), NAMES[:3], UNITS)


def read(ledger: Ledger, folder: Path, job: Job, why: ColonnadeError) -> Case:
    """Return what an officer reads of a job that the party refused."""
    spec = job_to_bytes(job)
    Proposals(ledger, HUB).declined(job_id(spec), spec, why)
    ledger.close()
    (found,) = cases(read_snapshot(LedgerFiles(folder / "ledger")), all_jobs=True)
    return found


@pytest.mark.parametrize("shielded", [False, True])
def test_the_bits_of_the_job_and_its_shield_are_told(shielded: bool, tmp_path: Path) -> None:
    shields = (0, SHIELD, 0) if shielded else ()
    job = make_sealed_job(founded(), NAMES[:3], UNITS, shields=shields)
    assert isinstance(job.method, SealedSpec)
    name = NAMES[1]
    ledger = new_ledger("disk", tmp_path, party=name)
    case = read(ledger, tmp_path, job, PolicyRefused("the policy"))
    assert PROMISE in case.promise
    assert f"{peer_bits(job.method, job.method.part(name)):,} bits at most" in case.promise
    shield = job.method.shield(job.method.part(name))
    assert (shield is not None) == shielded
    told = "" if shield is None else format_units(shield.cost, job.delta)
    assert ("shielded" in case.promise) == shielded
    assert told in case.promise


def test_a_sealed_job_without_a_place_for_the_party_is_still_read(
    plain: Job, tmp_path: Path
) -> None:
    # A coordinator that proposes one must not end the officer's list of jobs.
    ledger = new_ledger("disk", tmp_path, party="clinic")
    case = read(ledger, tmp_path, plain, BadMessage("the job has no place for party clinic"))
    assert (case.kind, case.units, case.leaving) == ("sealed", 0, ())
    assert PROMISE in case.promise
    assert "In this job" not in case.promise
