"""However an alignment ends at a party, the secrets of the run are overwritten and gone."""

import asyncio
import os
from pathlib import Path

import pytest
from support.aligning import Home, aligning, alignment_job, homes, in_a_loop, people_of, vault_alone
from support.federation import founded

from colonnade.core.errors import DatasetChanged
from colonnade.methods.alignment import sizes
from colonnade.methods.job import Job, job_id
from colonnade.party.methods.alignment.party import AlignmentParty
from colonnade.party.methods.alignment.state import PartyState
from colonnade.party.vault.vault import Vault
from colonnade.server.methods.alignment import Alignment
from colonnade.server.methods.alignment_state import CoordinatorState
from colonnade.server.store.sql import Database
from colonnade.v1 import alignment_pb2 as pb
from colonnade.wire.jobspec import job_to_bytes

PAIR = ("hospital", "laboratory")


def begun(folder: Path) -> tuple[Home, Vault, Job]:
    """Return a party that drew its secrets and sent its first answer."""
    sides = homes(folder, people_of(PAIR))
    home, job = sides[PAIR[0]], alignment_job(sides)
    vault = vault_alone(home.config(founded(), "127.0.0.1:1"), home.ledger)
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
        vault = vault_alone(config, home.ledger)
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


@in_a_loop
async def test_the_coordinators_database_holds_no_tag_when_the_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tags, kept = Alignment.absorb, set[bytes](), list[str]()

    def absorb(
        steps: Alignment, state: CoordinatorState, answers: dict[str, dict[str, bytes]]
    ) -> CoordinatorState:
        for bodies in answers.values():
            sent = pb.AlignmentTags.FromString(bodies.get(sizes.TAGS, b"")).tags
            tags.update(sent[at : at + 16] for at in range(0, len(sent), 16))
        after = real(steps, state, answers)
        if after.n_rows:  # the order is drawn
            kept.extend(name for name in after.blobs if not name.startswith("rows/"))
        return after

    monkeypatch.setattr(Alignment, "absorb", absorb)
    sides = homes(tmp_path, people_of(PAIR))
    store = Database(f"sqlite:///{tmp_path}/hub.db")
    async with aligning(sides, store=store) as hub:
        assert await hub.ended(await hub.submit(alignment_job(sides))) == "finished"
    store.close()
    assert len(tags) > 100
    assert kept == []
    content = b"".join(path.read_bytes() for path in tmp_path.glob("hub.db*"))
    assert not any(tag in content for tag in tags)


@pytest.mark.parametrize("cancelled", [False, True], ids=["finished", "cancelled"])
@in_a_loop
async def test_the_parties_ledgers_hold_no_point_and_no_tag_when_the_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    real, sent, seen = AlignmentParty.answer, set[bytes](), list[bool]()

    def answer(
        party: AlignmentParty, state: PartyState, task: bytes
    ) -> tuple[PartyState, dict[str, bytes]]:
        seen.append(any(each in stored_by(tmp_path) for each in sent))
        after, bodies = real(party, state, task)
        if cancelled and sizes.TAGS in bodies:
            raise DatasetChanged("as if the people were others now")
        for kind in (sizes.POINTS, sizes.HOPS, sizes.TAGS):
            body = bodies.get(kind, b"")
            sent.update(body[at : at + 16] for at in range(100, len(body) - 116, 16))
        return after, bodies

    monkeypatch.setattr(AlignmentParty, "answer", answer)
    sides = homes(tmp_path, people_of(PAIR, n_people=400))
    async with aligning(sides) as hub:
        name = await hub.submit(alignment_job(sides))
        assert await hub.ended(name) == ("failed" if cancelled else "finished")
        while any(states(home) for home in sides.values()):  # parties hear of the end
            await asyncio.sleep(0.01)
    assert len(sent) > 100
    assert any(seen)  # while the run went on
    content = stored_by(tmp_path)
    assert not any(each in content for each in sent)


def stored_by(folder: Path) -> bytes:
    """Return all that the ledgers' databases and logs have on disk."""
    return b"".join(path.read_bytes() for path in folder.glob("*/ledger/ledger.db*"))
