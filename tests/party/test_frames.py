"""The socket between a party's two processes: what is no frame, or no answer, ends it."""

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.aligning import in_a_loop
from support.vaults import ME, ledger_of, vault_of

from colonnade.bench.isolation.frames import Attack
from colonnade.core.errors import BadIdentity, BadInput, ColonnadeError, Unreachable
from colonnade.party.frames import MAX_FRAME_BYTES, BrokenLink, Frames, to_frame
from colonnade.party.vault.link import Link, dial, error_of
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import vault_pb2

PARTY, HUB = "spiffe://study/party/lab", "spiffe://study/coordinator/hub"


@given(st.lists(st.binary(max_size=300), max_size=6), st.lists(st.integers(1, 50), min_size=1))
def test_messages_come_out_whole_in_whatever_pieces_they_come(
    bodies: list[bytes], sizes: list[int]
) -> None:
    sent = [vault_pb2.NetAnswer(id=at, message=each) for at, each in enumerate(bodies)]
    found: list[vault_pb2.NetAnswer] = []
    data, frames = b"".join(map(to_frame, sent)), Frames()
    turn = 0
    while data:
        size = sizes[turn % len(sizes)]
        found += frames.take(data[:size], vault_pb2.NetAnswer)
        data, turn = data[size:], turn + 1
    assert found == sent
    assert frames.held == 0


def test_a_frame_that_is_too_long_is_refused_before_any_of_it_is_waited_for() -> None:
    for length in (MAX_FRAME_BYTES + 1, 2**31, 2**32 - 1):
        with pytest.raises(BrokenLink):
            list(Frames().take(struct.pack(">I", length), vault_pb2.NetAnswer))
    frames = Frames()
    assert list(frames.take(struct.pack(">I", MAX_FRAME_BYTES), vault_pb2.NetAnswer)) == []
    with pytest.raises(BrokenLink):
        to_frame(vault_pb2.NetAnswer(message=bytes(MAX_FRAME_BYTES)))


Answerer = Callable[[vault_pb2.NetCall], bytes | None]


async def with_net(answer: Answerer, work: Callable[[Link], Coroutine[Any, Any, None]]) -> None:
    """Run ``work`` against a net that answers each call with bytes, or with the end."""
    ours, vaults = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    frames = Frames()

    async def net() -> None:
        while data := await reader.read(1 << 16):
            for call in frames.take(data, vault_pb2.NetCall):
                if (said := answer(call)) is None:
                    writer.close()
                    return
                writer.write(said)

    serving, link = asyncio.create_task(net()), await Link.over(vaults)
    try:
        await work(link)
    finally:
        await link.close()
        serving.cancel()
        writer.close()


def done(number: int) -> bytes:
    return to_frame(vault_pb2.NetAnswer(id=number, done=vault_pb2.Done()))


BAD: dict[str, Answerer] = {
    "ends": lambda call: None,
    "another number": lambda call: done(call.id + 1),
    "too long": lambda call: struct.pack(">I", 2**31),
    "no message": lambda call: struct.pack(">I", 2) + b"\xff\xff",
    "twice": lambda call: done(call.id) + done(call.id),
}


@pytest.mark.parametrize("kind", BAD)
@in_a_loop
async def test_a_net_that_breaks_the_rules_is_hung_up_on(kind: str) -> None:
    async def work(link: Link) -> None:
        if kind == "twice":  # its second copy comes after the call
            await link.call(hang_up=vault_pb2.HangUp())
        with pytest.raises(Unreachable):
            await link.call(hang_up=vault_pb2.HangUp())
        assert not link.open
        with pytest.raises(Unreachable):
            await link.call(hang_up=vault_pb2.HangUp())

    await with_net(BAD[kind], work)


@in_a_loop
async def test_a_net_that_sends_half_a_frame_holds_up_its_own_call_alone() -> None:
    """Slow is no crime: other answers may not overtake it, and the vault gives up in time."""
    half = done(1)[:5]

    async def work(link: Link) -> None:
        with pytest.raises(Unreachable):
            await link.call(timeout=0.05, hang_up=vault_pb2.HangUp())
        assert not link.open  # a stuck net is replaced

    await with_net(lambda _: half, work)


@in_a_loop
async def test_an_answer_to_a_call_that_was_given_up_is_no_offence() -> None:
    late = list[int]()

    def answer(call: vault_pb2.NetCall) -> bytes:
        if call.WhichOneof("call") == "read":
            late.append(call.id)
            return b""
        return b"".join(map(done, [*late, call.id]))

    async def work(link: Link) -> None:
        reading = asyncio.create_task(link.call(timeout=None, read=vault_pb2.Read()))
        await asyncio.sleep(0.01)
        reading.cancel()
        await link.call(hang_up=vault_pb2.HangUp())
        assert link.open

    await with_net(answer, work)


@pytest.mark.parametrize(
    ("identity", "coordinator", "error"),
    [
        (PARTY, HUB, None),
        (HUB, HUB, BadIdentity),
        (PARTY, PARTY, BadIdentity),
        (PARTY, "spiffe://other/coordinator/hub", BadIdentity),
        ("", "", BadIdentity),
        ("lab", "a" * 10_000, BadIdentity),
    ],
)
@in_a_loop
async def test_the_vault_reads_the_names_that_net_tells(
    identity: str, coordinator: str, error: type[ColonnadeError] | None
) -> None:
    names = vault_pb2.Dialled(identity=identity, coordinator=coordinator)

    async def work(link: Link) -> None:
        if error is None:
            assert (await dial(link)).coordinator.uri == coordinator
        else:
            with pytest.raises(error):
                await dial(link)

    await with_net(lambda call: to_frame(vault_pb2.NetAnswer(id=call.id, dialled=names)), work)


def test_an_error_that_net_names_is_one_that_a_coordinator_could_name() -> None:
    assert type(error_of(vault_pb2.Failed(code="bad_input", message="x"))) is BadInput
    for code in ("", "no such", "ColonnadeError", "__class__"):
        assert type(error_of(vault_pb2.Failed(code=code, message="x"))) is Unreachable
    told = str(error_of(vault_pb2.Failed(code="bad_input", message="\x1b[31m" + "y" * 10_000)))
    assert told.isprintable()
    assert len(told) <= 300


def test_thousands_of_mutated_frames_do_nothing_but_answer_or_end_the_connection() -> None:
    """1e7 of them: python -m colonnade.bench.isolation.frames --frames 10000000."""
    ledger = ledger_of(0)
    vault = vault_of(ledger)
    before = ledger.budget()

    def deliver(message: pb.AttachResponse) -> None:
        match message.WhichOneof("message"):
            case "welcome":
                vault.check_known(message.welcome)
            case "proposal":
                vault.consider(message.proposal.spec)
            case "task":
                vault.answer(message.task.job_id, message.task.round, message.task.body)
            case "ending":
                vault.close_job(message.ending.job_id)

    async def run() -> None:
        counts = await Attack(3, deliver).run(4000)
        assert counts.violations == 0
        assert counts.frames == 4000
        assert counts.messages > 500
        assert counts.broken > 500

    asyncio.run(run())
    assert ledger.budget() == before
    assert ledger.opened.party == ME
