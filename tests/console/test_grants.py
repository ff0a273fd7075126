"""The officer's console shows who may have people scored, and how much of that is used."""

import datetime as dt
from pathlib import Path

from support.predicting import table_of

from colonnade.console.party.grants import GrantRow, grants
from colonnade.ledger.storage.snapshot import Snapshot
from colonnade.party.policy import Policy
from colonnade.party.policy_file import load_policy
from colonnade.wire.jobspec import job_to_bytes


def test_grants_say_for_whom_until_when_and_how_many_rows_are_used(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    study, party = table.study, table.study.names[1]
    limits = study.grant(max_rows="5", models_per_row="9"), study.grant(receiver='"nobody"')
    table.grant("".join(limits))
    specs = {}
    for rows in ([0, 1, 2], [3, 4]):
        job = study.request(rows)
        specs[table.run(job)[0]] = job_to_bytes(job)
    ledger, policy = study.ledgers[party], load_policy(study.policy(party))
    found = Snapshot(ledger.state, tuple(ledger.lines()), 0, specs, {})
    model = f"the model of job {study.job_id[:12]}"
    today, until = dt.date(2026, 1, 1), "2100-01-01"
    to, purpose = study.names[0], "triage"
    assert grants(found, policy, today) == (
        GrantRow(to, purpose, model, "5 of 5 rows used", ("warn", "Used up")),
        GrantRow("nobody", purpose, model, "0 of 10,000 rows used", ("good", f"Until {until}")),
    )
    (ended, _) = grants(found, policy, dt.date(2101, 1, 1))
    assert ended.state == ("", f"Ended {until}")
    assert grants(found, Policy(()), today) == ()
