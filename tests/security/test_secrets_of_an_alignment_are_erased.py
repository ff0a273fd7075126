"""However an alignment ends at a party, the secrets of the run are overwritten and gone."""

import os
from pathlib import Path

import pytest
from support.aligning import Home, alignment_job, homes, people_of
from support.federation import founded
from support.vaults import HUB

from colonnade.methods.job import Job, job_id
from colonnade.party import runtime
from colonnade.party.vault import Vault
from colonnade.wire.jobspec import job_to_bytes

PAIR = ("hospital", "laboratory")


def begun(folder: Path) -> tuple[Home, Vault, Job]:
    """Return a party that drew its secrets and sent its first answer."""
    sides = homes(folder, people_of(PAIR))
    home, job = sides[PAIR[0]], alignment_job(sides)
    vault = runtime.Party(home.config(founded(), "127.0.0.1:1"), home.ledger)._open_vault(None, HUB)
    assert vault.consider(job_to_bytes(job)).accepted
    vault.answer(job_id(job_to_bytes(job)), 0, b"")
    return home, vault, job


def states(home: Home) -> list[Path]:
    return [each for each in home.alignments.path.iterdir() if ".state" in each.name]


@pytest.mark.parametrize("restarted", [False, True], ids=["same process", "restarted"])
def test_a_run_that_was_cancelled_leaves_no_secrets(tmp_path: Path, restarted: bool) -> None:
    home, vault, job = begun(tmp_path)
    (state,) = states(home)
    os.link(state, tmp_path / "the same file")  # another name, by which its blocks are seen
    content = (tmp_path / "the same file").read_bytes()
    assert any(content)
    if restarted:  # told of the end without ever having been asked
        config = home.config(founded(), "127.0.0.1:1")
        vault = runtime.Party(config, home.ledger)._open_vault(None, HUB)
    vault.close_job(job_id(job_to_bytes(job)), finished=False)
    assert states(home) == []
    assert (tmp_path / "the same file").read_bytes() == bytes(len(content))


def test_a_state_is_overwritten_by_the_one_after_it(tmp_path: Path) -> None:
    home, _, job = begun(tmp_path)
    (path,) = states(home)
    os.link(path, tmp_path / "the same file")
    state = home.alignments.state(job_id(job_to_bytes(job)))
    assert state is not None
    home.alignments.save(job_id(job_to_bytes(job)), state)
    assert not any((tmp_path / "the same file").read_bytes())
    assert home.alignments.state(job_id(job_to_bytes(job))) == state
