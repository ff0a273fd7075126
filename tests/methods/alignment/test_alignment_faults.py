"""Alignments whose processes die: the same bytes again, one charge, one order of rows."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.aligning import (
    Home,
    alignment_job,
    check_rows,
    homes,
    in_a_loop,
    people_of,
    running,
)
from support.dying import Dying, lived
from support.federation import coordinator, founded

from colonnade.core.errors import BadMessage, DatasetChanged
from colonnade.ledger.create import open_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.methods.alignment import sizes
from colonnade.methods.alignment.crypto.exchange import Unattested
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.job import Job, job_id
from colonnade.party.alignment.answers import AlignmentAnswers
from colonnade.party.alignment.config import AlignConfig
from colonnade.party.alignment.people import read_people
from colonnade.party.alignment.store import AlignmentFolder
from colonnade.party.methods.alignment.party import AlignmentParty
from colonnade.party.methods.alignment.state import PartyState
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.privacy.simulation import SeededNoise
from colonnade.server.methods.alignment_job import AlignmentJob
from colonnade.server.store.sql import Database
from colonnade.simulate.federation import free_port
from colonnade.v1 import alignment_pb2 as pb
from colonnade.wire.jobspec import job_to_bytes

PAIR = ("hospital", "laboratory")
# Where a party may end: each of these is called at least once for most rounds.
PLACES = [
    (AlignmentFolder, "save"),
    (AlignmentFolder, "keep"),
    (Ledger, "store_many"),
    (Ledger, "purge_many"),
]


class Killed(BaseException):
    """Ends a party where no handler of the program catches it."""


@contextmanager
def killed_at(place: tuple[type, str], call: int, *, after: bool) -> Iterator[None]:
    """End the process at the ``call``-th call of a function, just before or just after it."""
    kind, name = place
    real: Callable[..., Any] = getattr(kind, name)
    left = [call]

    def dying(self: Any, *arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and not after:
            raise Killed
        made = real(self, *arguments, **named)
        if left[0] == 0:
            raise Killed
        return made

    setattr(kind, name, dying)
    try:
        yield
    finally:
        setattr(kind, name, real)


def answers_of(home: Home, job: Job) -> AlignmentAnswers:
    """Return a party's side as a process that has just started has it."""
    assert isinstance(job.method, AlignmentJobSpec)
    spec = job.method.alignment
    config = AlignConfig(id=("person",), source=home.folder / "people.csv")
    people = read_people(config.rows, config.id, spec.ids)
    name, ledger = job_id(job_to_bytes(job)), home.ledger
    ledger.admit(name, units=job.max_units(home.name), account=MEMBERSHIP)
    return AlignmentAnswers(
        name,
        spec,
        AlignmentParty(spec, home.name, ledger, people.ids, attestor=Unattested()),
        people.ids,
        config.id,
        Gate(ledger, SeededNoise(7)),
        ledger,
        home.alignments,
    )


def restarted(home: Home, job: Job) -> AlignmentAnswers:
    home.ledger.close()
    home.ledger = open_ledger(home.files)
    return answers_of(home, job)


def run_by_hand(
    sides: dict[str, Home], job: Job, *, place: tuple[type, str] | None, every: int, after: bool
) -> int:
    """Run all rounds; end the first party at every ``every``-th round and start it again.

    Returns how often it died.
    """
    assert isinstance(job.method, AlignmentJobSpec)
    steps = AlignmentJob.of(job, job_id(job_to_bytes(job)), job.method)
    answers = {name: answers_of(home, job) for name, home in sides.items()}
    state, deaths = steps.start(), 0
    while not steps.finished(state):
        bodies = {}
        for name, task in steps.tasks(state).items():
            if name == PAIR[0] and place is not None and state.round % every == 0:
                try:
                    with killed_at(place, 1, after=after):
                        answers[name].answer(state.round, task)
                except Killed:
                    deaths += 1
                    answers[name] = restarted(sides[name], job)
            released = answers[name].answer(state.round, task)
            again = answers[name].answer(state.round, task)
            assert [each.body for each in again] == [each.body for each in released]
            bodies[name] = {each.key.kind: each.body for each in released}
            steps.check(state, name, bodies[name])
        after_round = steps.absorb(state, bodies)
        change = steps.encode_change(state, after_round)
        state = steps.decode(change, since=state)  # as a restarted coordinator has it
        assert state == after_round
    return deaths


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[1])
def test_a_party_killed_anywhere_in_any_round_ends_with_the_same_order(
    tmp_path: Path, place: tuple[type, str], after: bool
) -> None:
    people = people_of(PAIR)
    sides = homes(tmp_path, people)
    job = alignment_job(sides)
    deaths = run_by_hand(sides, job, place=place, every=1, after=after)
    assert deaths >= (1 if place[1] == "keep" else 4)
    check_rows({name: side.rows() for name, side in sides.items()}, people, "union")
    for side in sides.values():
        assert side.ledger.budget(MEMBERSHIP).spent == job.max_units(side.name)


def test_a_party_whose_people_changed_during_a_run_refuses_to_go_on(tmp_path: Path) -> None:
    sides = homes(tmp_path, people_of(PAIR))
    job = alignment_job(sides)
    assert isinstance(job.method, AlignmentJobSpec)
    steps = AlignmentJob.of(job, "", job.method)
    answers = {name: answers_of(home, job) for name, home in sides.items()}
    state = steps.start()
    for _ in range(3):
        bodies = {
            name: {each.key.kind: each.body for each in answers[name].answer(state.round, task)}
            for name, task in steps.tasks(state).items()
        }
        state = steps.absorb(state, bodies)
    source = tmp_path / PAIR[0] / "people.csv"
    source.write_text(source.read_text() + "somebody new,1\n")
    changed = restarted(sides[PAIR[0]], job)
    with pytest.raises(DatasetChanged):
        changed.answer(state.round, steps.tasks(state)[PAIR[0]])


def test_a_party_whose_secrets_are_gone_draws_no_others(tmp_path: Path) -> None:
    sides = homes(tmp_path, people_of(PAIR))
    home, job = sides[PAIR[0]], alignment_job(sides)
    answers_of(home, job).answer(0, b"")
    (state,) = home.alignments.path.glob("*.state")
    state.unlink()
    with pytest.raises(DatasetChanged):  # other secrets would need other dummies, unpaid
        restarted(home, job).answer(0, b"")
    assert not any(home.alignments.path.glob("*.state"))


@pytest.mark.parametrize(
    "task",
    [pb.AlignmentTask(macs=b"x"), pb.AlignmentTask(round=1)],
    ids=["of another stage", "of another round"],
)
def test_a_task_that_cannot_be_the_first_costs_nothing(
    tmp_path: Path, task: pb.AlignmentTask
) -> None:
    sides = homes(tmp_path, people_of(PAIR))
    home, job = sides[PAIR[0]], alignment_job(sides)
    with pytest.raises(BadMessage):
        answers_of(home, job).answer(task.round, task.SerializeToString(deterministic=True))
    assert home.ledger.budget(MEMBERSHIP).spent == 0
    assert not any(home.alignments.path.glob("*.state"))


@pytest.mark.slow
def test_a_coordinator_that_dies_at_many_commits_ends_with_one_order(tmp_path: Path) -> None:
    people = people_of(PAIR)
    sides = homes(tmp_path, people)
    job = alignment_job(sides)
    made, port = founded(), free_port()
    url = f"sqlite:///{tmp_path}/hub.db"

    async def run() -> int:
        async with AsyncExitStack() as stack:
            for home in sides.values():
                await stack.enter_async_context(running(home, made, f"127.0.0.1:{port}"))
            deaths = 0

            # Attaching takes about 6 commits, and the next round is not asked before one: the
            # first lives, of 8 and 11 commits, cannot end the job, which has 8 rounds.
            def store() -> Dying:
                return Dying(url, 8 + 3 * deaths, after=bool(deaths % 2))

            while await lived(made, job, store(), port=port) is None:
                deaths += 1
                assert deaths < 20
            return deaths

    assert asyncio.run(run()) >= 2
    check_rows({name: side.rows() for name, side in sides.items()}, people, "union")
    for side in sides.values():
        assert side.ledger.budget(MEMBERSHIP).spent == job.max_units(side.name)


@pytest.mark.slow
@in_a_loop
async def test_a_party_that_is_restarted_in_many_rounds_pays_once(tmp_path: Path) -> None:
    people = people_of(PAIR)
    sides = homes(tmp_path, people)
    job = alignment_job(sides, chunk=20)
    made, store = founded(), Database("sqlite://")
    name = job_id(job_to_bytes(job))
    restarts = 0
    async with (
        coordinator(made, store=store) as hub,
        running(sides[PAIR[1]], made, hub.address),
    ):
        await hub.attached(PAIR[1])
        submitted = False
        while name not in hub.serving.engine.ended:
            async with running(sides[PAIR[0]], made, hub.address):
                await hub.attached(PAIR[0])
                if not submitted:
                    await hub.submit(job)
                    submitted = True
                target = len(sides[PAIR[0]].ledger.state.stored) + 2

                def moved(target: int = target) -> bool:
                    ended = name in hub.serving.engine.ended
                    return ended or len(sides[PAIR[0]].ledger.state.stored) > target

                await hub.until(moved)
            restarts += 1
        assert hub.serving.engine.ended[name].value == "finished"
    store.close()
    assert restarts > 3
    check_rows({each: side.rows() for each, side in sides.items()}, people, "union")
    assert sides[PAIR[0]].ledger.budget(MEMBERSHIP).spent == job.max_units(PAIR[0])
    state = sides[PAIR[0]].ledger.state
    kept = {key.kind for key in state.stored.keys() - state.purged}
    assert kept <= {MEMBERSHIP, sizes.CONFIRM, sizes.ACCEPTED}  # no point and no tag stays


@pytest.mark.parametrize("written", [0, 1, 30])
@pytest.mark.parametrize("call", range(4))
def test_an_erasure_that_was_cut_off_is_done_at_the_next_start(
    call: int, written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets are overwritten before their names go, so a death between leaves what none can read.

    Found by `colonnade bench faults --small --first 20516 --seeds 1`: the party ended at every
    start, on the same file.
    """
    folder = AlignmentFolder(tmp_path)
    rows = tmp_path / f"{bytes(32).hex()}.alignment"
    folder.save("job", PartyState(bytes(32), None, bytes(range(32)), kept=1, rows=b"rows"))
    rows.write_bytes(b"the rows of people")
    before, left, real = (tmp_path / "job.state").read_bytes(), [call], os.fsync

    def dying(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        real(descriptor)

    with monkeypatch.context() as dies, contextlib.suppress(Killed):
        dies.setattr(os, "fsync", dying)
        folder.erase("job", finished=False)
    state = tmp_path / "job.state"
    if state.exists() and state.read_bytes() != before:  # the disk kept a part of the zeros
        assert not rows.exists()
        state.write_bytes(bytes(written) + before[written:] if written else bytes(len(before)))
    folder.erase("job", finished=False)
    assert [*tmp_path.iterdir()] == []
