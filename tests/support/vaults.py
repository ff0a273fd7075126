"""A party's vault for tests, and what a refusal must leave alone."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from colonnade.core.errors import ColonnadeError
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.ledger import Ledger
from colonnade.party.data.dataset import open_dataset
from colonnade.party.policy_file import load_policy
from colonnade.party.vault.vault import Vault
from colonnade.pki.identity import Identity
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.federation import FEDERATION
from support.federation import NAMES, founded

ME, OTHER = NAMES[:2]
HUB = Identity(FEDERATION, "coordinator", "hub")


def vault_of(ledger: Ledger, *, policy: Path | None = None, noise: Any = None) -> Vault:
    home = founded().folder / ME
    return Vault(
        open_dataset(home / "data"),
        ledger,
        noise or SeededNoise(1),
        policy=load_policy(policy or home / "policy.toml"),
        coordinator=HUB,
        today=lambda: dt.date(2026, 1, 1),
    )


def ledger_of(cap: int) -> Ledger:
    return memory_ledger(LedgerConfig(ME, {"": cap}, simulation=True))


def refusal(vault: Vault, ledger: Ledger, *task: Any) -> type[ColonnadeError]:
    """Return the error that refuses a task, which must leave the ledger as it was."""
    before = ledger.head
    with pytest.raises(ColonnadeError) as refused:
        vault.answer(*task)
    assert ledger.head == before
    return refused.type
