"""A second ledger beside the same people does not have their membership account again."""

from pathlib import Path

from support.aligning import CAP, Home, alignment_job, people_of, vault_alone
from support.federation import founded
from support.ledgers import spending

from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.wire.jobspec import job_to_bytes


def accepted(home: Home, other: Home) -> tuple[bool, str]:
    """Propose an alignment to the party as its folder and its ledger are now."""
    job = alignment_job({home.name: home, other.name: other}, epsilon=0.5)
    config = home.config(founded(), "127.0.0.1:1")
    vault = vault_alone(config, home.ledger)
    decision = vault.consider(job_to_bytes(job))
    return decision.accepted, decision.code


def test_alignments_that_one_ledger_paid_for_are_closed_to_another(tmp_path: Path) -> None:
    people = people_of(("hospital", "laboratory"))
    home = Home("hospital", tmp_path / "hospital", people["hospital"])
    other = Home("laboratory", tmp_path / "laboratory", people["laboratory"])
    assert accepted(home, other) == (True, "")
    first = home.ledger
    files = LedgerFiles(home.folder / "second")
    create_ledger(files, LedgerConfig("hospital", {"": CAP}, simulation=True))
    home.ledger = open_ledger(files)
    head = spending(home.ledger)
    assert accepted(home, other) == (False, "not_bound")
    assert spending(home.ledger) == head
    home.ledger = first
    assert accepted(home, other) == (True, "")


def test_an_alignment_that_the_policy_refuses_claims_no_folder(tmp_path: Path) -> None:
    people = people_of(("hospital", "laboratory"))
    home = Home("hospital", tmp_path / "hospital", people["hospital"])
    other = Home("laboratory", tmp_path / "laboratory", people["laboratory"])
    (home.folder / "policy.toml").write_text(
        (home.folder / "policy.toml").read_text().replace('["*"]', '["bank"]')
    )
    assert accepted(home, other) == (False, "policy_refused")
    assert not home.alignments.path.exists()
