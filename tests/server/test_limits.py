"""What the coordinator's port refuses, and that it serves the others all the while."""

import asyncio
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.federation import (
    NAMES,
    WAIT_S,
    Running,
    coordinator,
    credentials_of,
    everyone,
    founded,
    make_job,
    party,
)
from support.pki import SERVER_USE, Pki, create_pki, leaf

from colonnade.client import Client
from colonnade.core.errors import BadIdentity, BadInput, Unreachable
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.party.vault import party as vault_party
from colonnade.pki.authority import Credentials
from colonnade.pki.identity import fingerprint
from colonnade.server.api import operators as jobs
from colonnade.server.api.auth import Authenticator
from colonnade.simulate.federation import FEDERATION, HUB
from colonnade.v1 import federation_pb2, job_pb2, jobs_pb2
from colonnade.v1.federation_pb2_grpc import FederationServiceStub
from colonnade.v1.jobs_pb2_grpc import JobServiceStub
from colonnade.wire.channels import open_channel, server_identity
from colonnade.wire.heads import head_to_proto
from colonnade.wire.limits import MAX_MESSAGE_BYTES, server_options
from colonnade.wire.session import PROTOCOL, enrolment_statement

LAB, ANALYST = NAMES[0], "analyst"
Code = grpc.StatusCode


def serve(check: Callable[[Running], Awaitable[None]], tmp_path: Path, **options: Any) -> None:
    """Run a coordinator with one party and a check; the party is served to the end."""

    async def run() -> None:
        async with everyone(founded(), [LAB], tmp_path, **options) as (hub, members):
            await check(hub)
            assert not members[LAB].task.done()
            name = await hub.submit(make_job(founded(), [LAB], rounds=2))
            assert await hub.ended(name) == "finished"

    asyncio.run(run())


def large_channel(address: str, who: str) -> grpc.aio.Channel:
    """Return a channel of someone who does not limit what it sends."""
    credentials = credentials_of(founded(), who)
    tls = grpc.ssl_channel_credentials(
        credentials.root_pem, credentials.key_pem, credentials.chain_pem
    )
    return grpc.aio.secure_channel(
        address,
        tls,
        options=[
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", 1 << 22),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),  # a connection of its own
        ],
    )


async def status(call: Awaitable[Any]) -> tuple[Code, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code(), refused.value.details() or ""


@pytest.mark.slow
def test_an_oversized_message_is_refused_and_the_server_lives(tmp_path: Path) -> None:
    async def check(hub: Running) -> None:
        async with large_channel(hub.address, ANALYST) as channel:
            stub = JobServiceStub(channel)
            for size in (MAX_MESSAGE_BYTES + 1, 4 * MAX_MESSAGE_BYTES):
                request = jobs_pb2.SubmitJobRequest(spec=bytes(size))
                code, text = await status(stub.SubmitJob(request, timeout=20))
                assert code is Code.RESOURCE_EXHAUSTED
                assert "larger than max" in text
            # A compressed bomb is measured after it is unpacked.
            bomb = jobs_pb2.SubmitJobRequest(spec=bytes(8 * MAX_MESSAGE_BYTES))
            code, _ = await status(
                stub.SubmitJob(bomb, timeout=20, compression=grpc.Compression.Gzip)
            )
            assert code is Code.RESOURCE_EXHAUSTED
        async with large_channel(hub.address, LAB) as channel:
            call = FederationServiceStub(channel).Attach(timeout=20)
            hello = federation_pb2.Hello(program="x" * (MAX_MESSAGE_BYTES + 1))
            await call.write(federation_pb2.AttachRequest(hello=hello))
            assert (await status(call.read()))[0] is Code.RESOURCE_EXHAUSTED

    serve(check, tmp_path)


def test_a_client_says_that_a_message_is_too_large(tmp_path: Path) -> None:
    async def check(hub: Running) -> None:
        def submit() -> None:
            with Client(hub.address, credentials_of(founded(), ANALYST)) as client:
                with pytest.raises(BadInput, match="too large"):
                    client.submit(bytes(MAX_MESSAGE_BYTES + 1))
                assert client.jobs() == []  # and goes on

        await asyncio.to_thread(submit)

    serve(check, tmp_path)


@pytest.mark.slow
def test_a_metadata_bomb_is_refused(tmp_path: Path) -> None:
    async def check(hub: Running) -> None:
        async with large_channel(hub.address, ANALYST) as channel:
            stub = JobServiceStub(channel)
            for size in (20_000, 1_000_000):
                call = stub.ListJobs(
                    jobs_pb2.ListJobsRequest(), timeout=20, metadata=(("x-bomb", "a" * size),)
                )
                code, _ = await status(call)
                assert code in (Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE, Code.INTERNAL)
        async with large_channel(hub.address, ANALYST) as channel:
            await JobServiceStub(channel).ListJobs(jobs_pb2.ListJobsRequest(), timeout=20)

    serve(check, tmp_path)


@pytest.mark.slow
def test_who_connects_and_says_nothing_is_cut_off(tmp_path: Path) -> None:
    async def check(hub: Running) -> None:
        host, port = hub.address.split(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(20)]
        for reader, writer in silent:
            with suppress(ConnectionError):  # gRPC itself would wait for two minutes
                assert await asyncio.wait_for(reader.read(), WAIT_S) == b""
            writer.close()

    serve(check, tmp_path, options=server_options(handshake_timeout_s=1))


def test_eight_streams_of_a_connection_are_served_and_no_more(tmp_path: Path) -> None:
    async def check(hub: Running) -> None:
        name = await waiting_job(hub, tmp_path)
        async with large_channel(hub.address, ANALYST) as channel:
            stub, request = JobServiceStub(channel), jobs_pb2.WatchJobRequest(job_id=name)
            watches = [stub.WatchJob(request) for _ in range(12)]
            first = [asyncio.create_task(watch.read()) for watch in watches]
            watchers = hub.serving.board._watchers
            await hub.until(lambda: sum(task.done() for task in first) >= 8)
            served = [task for task in first if task.done() and task.exception() is None]
            assert len(served) <= len(watchers[name]) <= 8
            # The others wait or are refused; another connection has streams of its own.
            async with large_channel(hub.address, ANALYST) as another:
                watch: Any = JobServiceStub(another).WatchJob(request)
                assert (await asyncio.wait_for(watch.read(), WAIT_S)).job.job_id == name
                assert 2 <= len(watchers[name]) <= 9
            for each in watches:
                each.cancel()
            await asyncio.wait_for(asyncio.gather(*first, return_exceptions=True), WAIT_S)
        await hub.serving.worker.do(lambda: hub.serving.engine.cancel(name, "test"))

    serve(check, tmp_path)


async def waiting_job(hub: Running, folder: Path) -> str:
    """Submit a job that a second party, enrolled and away, keeps from starting."""
    async with party(founded(), NAMES[1], hub.address, folder) as second:
        await hub.attached(NAMES[1])
        second.stop.set()
        await second.task
    return await hub.submit(make_job(founded(), [LAB, NAMES[1]], salt=9))


def test_a_session_must_begin_with_a_hello(tmp_path: Path) -> None:
    async def check(hub: Running) -> None:
        async with open_channel(hub.address, credentials_of(founded(), LAB)) as channel:
            call = FederationServiceStub(channel).Attach(timeout=20)
            refusal = federation_pb2.Refusal(job_id="x")
            await call.write(federation_pb2.AttachRequest(epoch=1, refusal=refusal))
            assert (await status(call.read()))[0] is Code.INVALID_ARGUMENT
            call = FederationServiceStub(channel).Attach(timeout=20)
            await call.done_writing()
            assert (await status(call.read()))[0] is Code.INVALID_ARGUMENT

    serve(check, tmp_path)


# -- who may call --------------------------------------------------------------------------------


def test_roles_are_kept_apart(tmp_path: Path) -> None:
    async def check(hub: Running) -> None:
        for who in (ANALYST, HUB):
            async with large_channel(hub.address, who) as channel:
                stub = FederationServiceStub(channel)
                request = federation_pb2.EnrolRequest()
                code, text = await status(stub.Enrol(request, timeout=20))
                # A coordinator's certificate is not for clients: TLS itself refuses it.
                assert code is (Code.UNAVAILABLE if who == HUB else Code.UNAUTHENTICATED), text
                call = stub.Attach(timeout=20)
                assert (await status(call.read()))[0] is code
        async with large_channel(hub.address, LAB) as channel:
            operate = JobServiceStub(channel)
            submit = operate.SubmitJob(jobs_pb2.SubmitJobRequest(), timeout=20)
            assert (await status(submit))[0] is Code.PERMISSION_DENIED
            cancel = operate.CancelJob(jobs_pb2.CancelJobRequest(), timeout=20)
            assert (await status(cancel))[0] is Code.PERMISSION_DENIED

    serve(check, tmp_path)


def test_strangers_are_refused_at_the_door(tmp_path: Path) -> None:
    made = founded()
    pki = Pki(made.folder, FEDERATION)
    mine = credentials_of(made, LAB)
    other = leaf(None, uris=[mine.identity.uri])
    expired = leaf(pki.signer("parties"), uris=[mine.identity.uri], days=(-2, -1))
    future = leaf(pki.signer("parties"), uris=[mine.identity.uri], days=(1, 2))
    lax = leaf(pki.lax(), uris=[f"spiffe://elsewhere/party/{LAB}"])

    async def check(hub: Running) -> None:
        async def refused(channel: grpc.aio.Channel, code: Code) -> None:
            async with channel:
                call = FederationServiceStub(channel).Enrol(
                    federation_pb2.EnrolRequest(), timeout=20
                )
                assert (await status(call))[0] is code

        await refused(grpc.aio.insecure_channel(hub.address), Code.UNAVAILABLE)
        anonymous = grpc.ssl_channel_credentials(mine.root_pem)
        await refused(grpc.aio.secure_channel(hub.address, anonymous), Code.UNAVAILABLE)
        for pair in (other, expired, future):
            tls = grpc.ssl_channel_credentials(mine.root_pem, pair.key_pem, pair.chain_pem)
            await refused(grpc.aio.secure_channel(hub.address, tls), Code.UNAVAILABLE)
        # Another federation's name under our own root passes TLS and is refused behind it.
        tls = grpc.ssl_channel_credentials(mine.root_pem, lax.key_pem, lax.chain_pem)
        await refused(grpc.aio.secure_channel(hub.address, tls), Code.UNAUTHENTICATED)

    serve(check, tmp_path)


def test_a_party_does_not_talk_with_a_stranger(tmp_path: Path) -> None:
    """Another federation's root, or a party's certificate behind a port, is named as the cause."""
    made = founded()
    mine = credentials_of(made, LAB)
    foreign = create_pki(tmp_path / "foreign", FEDERATION).coordinator()
    pki = Pki(made.folder, FEDERATION)
    impostor = leaf(
        pki.lax(),
        uris=[mine.identity.uri],
        dns=["localhost"],
        uses=(SERVER_USE,),
    )

    async def dial(certificate: tuple[bytes, bytes], says: str) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
        key.write_bytes(certificate[0])
        chain.write_bytes(certificate[1])
        context.load_cert_chain(chain, key)

        async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=context)
        address = f"localhost:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(BadIdentity, match=says):
            await asyncio.to_thread(server_identity, address, mine)
        server.close()

    asyncio.run(dial((foreign.key_pem, foreign.chain_pem), "not to be trusted"))
    asyncio.run(dial((impostor.key_pem, impostor.chain_pem), "no coordinator of this federation"))


def test_a_port_that_hangs_up_is_unreachable_and_no_stranger(tmp_path: Path) -> None:
    mine = credentials_of(founded(), LAB)

    async def run() -> None:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for _ in range(3):
            with pytest.raises(Unreachable):
                await asyncio.to_thread(server_identity, address, mine)
        server.close()
        with pytest.raises(Unreachable, match="refused"):
            await asyncio.to_thread(server_identity, address, mine)

    asyncio.run(run())


async def assert_cut_off(hub: Running, credentials: Credentials, then: Callable[[], None]) -> None:
    """Hold a silent session, change something, and see the session end long before its time."""
    ledger = memory_ledger(LedgerConfig(credentials.identity.name, {"": 10}, simulation=True))
    ledger_id = bytes.fromhex(ledger.opened.ledger_id)
    statement = enrolment_statement(FEDERATION, credentials.identity.name, ledger_id)
    async with open_channel(hub.address, credentials) as channel:
        stub = FederationServiceStub(channel)
        request = federation_pb2.EnrolRequest(
            ledger_id=ledger_id,
            ledger_key=bytes.fromhex(ledger.opened.public_key),
            signature=ledger.sign(statement),
        )
        await stub.Enrol(request, timeout=20)
        call: Any = stub.Attach(timeout=WAIT_S)
        offer = federation_pb2.Offer(
            dataset="ab" * 16, population=10, unit=job_pb2.UNIT_RECORD, cap_units=10
        )
        head = head_to_proto(ledger.signed_head(FEDERATION))
        hello = federation_pb2.Hello(protocol=PROTOCOL, ledger_id=ledger_id, offer=offer, head=head)
        await call.write(federation_pb2.AttachRequest(hello=hello))
        assert (await call.read()).HasField("welcome")
        then()
        code, text = await status(call.read())
        assert code is Code.UNAUTHENTICATED, text
        # And a new call is refused too.
        assert (await status(stub.Enrol(request, timeout=20)))[0] is Code.UNAUTHENTICATED
        await hub.until(lambda: credentials.identity.name not in hub.serving.engine.attached)


@pytest.mark.slow
def test_a_certificate_that_ends_cuts_its_open_session(tmp_path: Path) -> None:
    moment = datetime.now(UTC)
    later = timedelta(0)
    authenticator = Authenticator(FEDERATION, clock=lambda: moment + later)
    other = credentials_of(founded(), NAMES[1])

    async def check(hub: Running) -> None:
        def end() -> None:
            nonlocal later
            later = other.not_after - moment + timedelta(seconds=1)

        await assert_cut_off(hub, other, end)

    async def run() -> None:
        async with coordinator(founded(), authenticator=authenticator) as hub:
            await check(hub)

    asyncio.run(run())


@pytest.mark.slow
def test_a_short_lived_certificate_is_cut_when_it_expires(tmp_path: Path) -> None:
    made = founded()
    pki, mine = Pki(made.folder, FEDERATION), credentials_of(made, NAMES[1])
    life = 2.0 / 86_400  # days: two seconds
    short = leaf(pki.signer("parties"), uris=[mine.identity.uri], days=(-1, life))
    credentials = Credentials(
        short.key_pem,
        short.chain_pem,
        mine.root_pem,
        mine.identity,
        mine.not_after,
        mine.not_before,
    )

    async def check(hub: Running) -> None:
        await assert_cut_off(hub, credentials, lambda: None)

    serve(check, tmp_path)


@pytest.mark.slow
def test_a_denied_key_cuts_its_open_session(tmp_path: Path) -> None:
    denylist = tmp_path / "denied.txt"
    denylist.write_text("# nobody yet\n")
    other = credentials_of(founded(), NAMES[1])

    async def check(hub: Running) -> None:
        def deny() -> None:
            denylist.write_text(f"{fingerprint(other.chain_pem)}  # stolen\n")

        await assert_cut_off(hub, other, deny)

    serve(check, tmp_path, authenticator=Authenticator(FEDERATION, denylist))


def test_while_the_denylist_cannot_be_read_nobody_new_is_let_in(tmp_path: Path) -> None:
    denylist = tmp_path / "denied.txt"
    denylist.write_text("")
    authenticator = Authenticator(FEDERATION, denylist)
    authenticator._looked = -10.0
    denylist.write_text("not a fingerprint")
    with pytest.raises(Unreachable, match="denylist"):
        authenticator.denied()
    with pytest.raises(BadInput, match="line 1"):
        Authenticator(FEDERATION, denylist)
    denylist.write_text("")
    assert authenticator.denied() == frozenset()


@pytest.mark.slow
def test_a_denied_watcher_is_cut_off(tmp_path: Path) -> None:
    denylist = tmp_path / "denied.txt"
    denylist.write_text("")
    analyst = credentials_of(founded(), ANALYST)

    async def check(hub: Running) -> None:
        name = await waiting_job(hub, tmp_path)
        async with open_channel(hub.address, analyst) as channel:
            call: Any = JobServiceStub(channel).WatchJob(jobs_pb2.WatchJobRequest(job_id=name))
            assert (await call.read()).job.job_id == name
            denylist.write_text(fingerprint(analyst.chain_pem))

            async def rest() -> None:
                while await call.read() is not grpc.aio.EOF:
                    pass

            assert (await status(asyncio.wait_for(rest(), 10)))[0] is Code.UNAUTHENTICATED
        await hub.serving.worker.do(lambda: hub.serving.engine.cancel(name, "test"))

    serve(check, tmp_path, authenticator=Authenticator(FEDERATION, denylist))


@pytest.mark.slow
def test_connections_end_with_their_age_and_the_session_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_party, "_FIRST_WAIT_S", 0.02)
    ages = {"grpc.max_connection_age_ms": 300, "grpc.max_connection_age_grace_ms": 100}
    aged = [(name, ages.get(name, value)) for name, value in server_options()]

    async def check(hub: Running) -> None:
        await hub.until(lambda: hub.serving.engine.parties[LAB].epoch >= 3)
        await hub.until(lambda: LAB in hub.serving.engine.attached)
        seen.append(hub.serving.engine.parties[LAB].epoch)

    seen: list[int] = []
    serve(check, tmp_path, options=aged)
    assert seen[0] >= 3


def test_a_look_at_the_coordinator_leaves_no_copy_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file was made")

    mine = credentials_of(founded(), LAB)

    async def check(hub: Running) -> None:
        monkeypatch.setattr(tempfile, "mkdtemp", refuse)
        monkeypatch.setattr(tempfile, "mkstemp", refuse)
        found = await asyncio.to_thread(server_identity, hub.address, mine)
        assert found.role == "coordinator"
        monkeypatch.undo()

    serve(check, tmp_path)


def test_a_failure_inside_a_look_is_bare_and_hurts_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("row 17 holds 4.2")

    monkeypatch.setattr(jobs, "party_status", broken)

    async def check(hub: Running) -> None:
        async with large_channel(hub.address, ANALYST) as channel:
            call = JobServiceStub(channel).ListParties(jobs_pb2.ListPartiesRequest(), timeout=20)
            assert await status(call) == (Code.INTERNAL, "")

    serve(check, tmp_path)
