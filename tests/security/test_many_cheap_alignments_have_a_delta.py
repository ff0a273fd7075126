"""What many alignments may cost together is bounded by the sum of their deltas, and by rho.

A run of a small epsilon costs next to no rho. Without a bound on the sum of deltas, a cap that pays
for one run of epsilon 1 would pay for 250,000 of epsilon 0.002, with a delta of 1e-6 each.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from support.aligning import POLICY, alignment_job
from support.proposals import KNOWN, pair, vault_of, with_spec

from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.job import Job, job_id
from colonnade.privacy.membership import MEMBERSHIP, MembershipNoise
from colonnade.wire.jobspec import job_to_bytes

MOST = 1 / 2000  # one in all people whom two parties may list


def delta_of(job: Job) -> float:
    assert isinstance(job.method, AlignmentJobSpec)
    return job.method.alignment.noise.delta


@pytest.mark.parametrize("ends", [True, False], ids=["one after another", "all at once"])
def test_deltas_of_all_runs_together_stay_a_promise(tmp_path: Path, ends: bool) -> None:
    sides = pair(tmp_path, KNOWN[:20], POLICY)
    vault, total, codes = vault_of(sides["hospital"]), 0.0, list[str]()
    for _ in range(6):
        job = with_spec(alignment_job(sides), noise=MembershipNoise(4, 30))
        job = replace(job, delta=MOST)
        name = job_id(job_to_bytes(job))
        decided = vault.consider(job_to_bytes(job))
        codes.append(decided.code)
        if not decided.accepted:
            continue
        total += delta_of(job)
        if ends:
            vault.answer(name, 0, b"")
            vault = vault_of(sides["hospital"])  # it is the ledger that knows
            assert vault.consider(job_to_bytes(job)).code == ""  # itself it does not count twice
            vault.close_job(name)
    n_taken = codes.count("")
    assert total <= MOST < total + delta_of(job)
    assert 1 < n_taken < 6
    assert codes == [""] * n_taken + ["budget_exceeded"] * (6 - n_taken)
    budget = sides["hospital"].ledger.budget(MEMBERSHIP)
    assert budget.spent < budget.cap / 2  # rho is not what ran out
