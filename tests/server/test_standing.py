"""A coordinator knows what is left of parties' budgets as it is now, not as it was at the hello."""

import asyncio
from pathlib import Path

import pytest
from support.desk import CAP as DESK_CAP
from support.desk import Desk
from support.federation import CAP, NAMES, Running, coordinator, everyone, founded, make_job, party

from colonnade.core.errors import BadInput
from colonnade.server.engine.progress import party_status
from colonnade.server.store.sql import Database
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.heads import head_to_proto

MAX_S = 20.0


def left(hub: Running, name: str) -> int:
    """Return what `job parties` shows."""
    engine = hub.serving.engine
    status = party_status(engine, engine.parties[name])
    return status.cap_units - status.used_units


def test_what_is_set_aside_and_spent_and_freed_is_told_while_the_session_is_open(
    tmp_path: Path,
) -> None:
    made, names = founded(), NAMES[:2]

    async def scenario() -> None:
        async with everyone(made, names, tmp_path) as (hub, members):
            assert {left(hub, name) for name in names} == {CAP}
            async with party(made, NAMES[2], hub.address, tmp_path):
                await hub.attached(NAMES[2])
            # The third is away now: the job waits, with what it may cost set aside by the two.
            job = make_job(made, NAMES[:3])
            submitted = await hub.submit(job)
            aside = CAP - job.max_units(names[0])
            await hub.until(lambda: {left(hub, name) for name in names} == {aside}, MAX_S)
            await hub.serving.worker.do(lambda: hub.serving.engine.cancel(submitted, "test"))
            await hub.until(lambda: {left(hub, name) for name in names} == {CAP}, MAX_S)
            done = await hub.submit(make_job(made, names, salt=1))
            assert await hub.ended(done) == "finished"
            assert all(0 < member.spent() < job.max_units(names[0]) for member in members.values())

            def is_told() -> bool:
                return all(left(hub, name) == CAP - each.spent() for name, each in members.items())

            await hub.until(is_told, MAX_S)

    asyncio.run(scenario())


def test_what_was_told_is_kept_with_its_time(tmp_path: Path) -> None:
    made, url = founded(), f"sqlite:///{tmp_path / 'hub.db'}"

    async def scenario() -> tuple[int, float]:
        store = Database(url)
        try:
            async with (
                coordinator(made, store=store, clock=lambda: 1234.5) as hub,
                party(made, NAMES[0], hub.address, tmp_path) as member,
            ):
                await hub.attached(NAMES[0])
                done = await hub.submit(make_job(made, NAMES[:1]))
                assert await hub.ended(done) == "finished"
                await hub.until(lambda: left(hub, NAMES[0]) == CAP - member.spent(), MAX_S)
                return CAP - member.spent(), hub.serving.engine.parties[NAMES[0]].told_at
        finally:
            store.close()

    remaining, told_at = asyncio.run(scenario())
    store = Database(url)
    (row,) = store.parties()
    store.close()
    offer = pb.Offer.FromString(row.offer)
    assert offer.cap_units - offer.spent_units - offer.reserved_units == remaining
    assert row.told_at == told_at == 1234.5


@pytest.mark.parametrize("alone", [True, False])
def test_a_budget_that_no_ledger_has_is_refused_whole(alone: bool) -> None:
    desk = Desk("hospital", "lab")
    desk.attach("lab")
    ledger = desk.sides["lab"].ledger
    ledger.admit("job", units=5)
    head = head_to_proto(ledger.signed_head("study"))
    standing = pb.Standing(head=head, cap_units=DESK_CAP, spent_units=DESK_CAP, reserved_units=1)
    message = pb.AttachRequest(epoch=desk.epochs["lab"], standing=standing)
    if not alone:
        message.decision.job_id = "job"
    desk.refused(BadInput, "more than its cap", desk.engine.receive, "lab", message)
