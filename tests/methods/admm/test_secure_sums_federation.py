"""Secure sums between real processes, which are killed."""

from collections import Counter
from pathlib import Path

import pytest
from support.dying import kill_and_restart

from colonnade.client import AdmmOptions
from colonnade.client.builder import build_admm_job
from colonnade.ledger.create import open_ledger
from colonnade.masking.kinds import OPENED, SURVIVORS
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.privacy.accounting import units_down
from colonnade.simulate.admm.run import TARGET, Population, found, people
from colonnade.simulate.processes import Processes

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fork_server")]

POPULATION = Population(clients=24, rows_per_client=6, features=3, hosts=5)
OPTIONS = AdmmOptions(aggregate="cohort", rounds=6, epsilon=4.0, colluding=1)


def test_hosts_and_coordinator_killed_amid_secure_sums_pay_once_and_say_nothing_twice(
    tmp_path: Path,
) -> None:
    made = found(tmp_path / "all", people(POPULATION), cap_units=units_down(4.0), cohort=True)
    with Processes(made, tmp_path / "logs") as processes:
        with processes.client() as client:
            offers = processes.wait_for_parties(client)
            job = build_admm_job(offers, OPTIONS, target=TARGET, round_timeout_s=30)
            name = client.submit(job)
            for view in client.watch(name):
                if view.rounds_done >= 2:
                    break
        kill_and_restart(processes, "host-2", "coordinator", "host-4")
        with processes.client() as client:
            client.wait(name)
            report = client.report(name).document
    assert isinstance(job.method, AdmmJobSpec)
    spec, rounds = job.method.spec, job.method.spec.rounds
    assert report["rounds"]["done"] == rounds
    assert report["clients"]["cohort"]["holds"] == "if named peers follow the protocol"
    assert "if named peers follow the protocol" in report["privacy"]["statement"]
    attempts_lost = sum(each["drawings"] - 1 for each in report["clients"]["rounds"])
    for party in made.parties:
        ledger = open_ledger(made.ledger(party))
        charges = ledger.state.charges
        # One set of survivors and one opening an attempt, whatever was asked how often; a host that
        # was away for longer than an exchange waits is not in that sum.
        counts = Counter(key.kind for key in charges)
        assert 1 <= counts[OPENED] <= counts[SURVIVORS] <= rounds + attempts_lost
        assert len({(key.round, key.kind, key.account) for key in charges}) == len(charges)
        answered = report["clients"]["answers_by_client"][party]
        spent = [ledger.budget(account).spent for account in ledger.state.accounts()]
        assert max(spent) <= spec.max_units
        # Who may have paid is counted: never fewer than the ledger says.
        assert sum(charge.units > 0 for charge in charges.values()) <= sum(answered)
        ledger.close()
