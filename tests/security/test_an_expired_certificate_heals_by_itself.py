"""An expired certificate stops nobody for good: a party goes on trying, and exit codes say so."""

import asyncio
import logging
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.federation import coordinator, founded, party
from support.pki import SERVER_USE, create_pki, leaf

from colonnade.cli.main import main
from colonnade.core.errors import EXIT_CERTIFICATE, BadIdentity, CertificateExpired, Unreachable
from colonnade.server.api.auth import Authenticator
from colonnade.simulate.federation import FEDERATION
from colonnade.wire.channels import server_identity


def test_a_running_party_outlives_its_certificate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The clock runs past the certificate's end and, when it is as good as renewed, back."""
    ahead = timedelta()

    async def scene() -> None:
        nonlocal ahead
        made = founded()
        authenticator = Authenticator(FEDERATION, clock=lambda: datetime.now(UTC) + ahead)
        name = made.parties[0]
        async with (
            coordinator(made, authenticator=authenticator) as hub,
            party(made, name, hub.address, tmp_path) as member,
        ):
            await hub.attached(name)
            ahead = timedelta(days=400)
            hub.serving.board.end_all()
            await hub.until(lambda: member.task.done() or "certificate_expired " in caplog.text)
            assert not member.task.done()
            assert name not in hub.serving.engine.attached
            ahead = timedelta()
            await hub.until(lambda: member.task.done() or name in hub.serving.engine.attached)
            assert not member.task.done()

    with caplog.at_level(logging.WARNING, "colonnade"):
        asyncio.run(scene())


def test_at_the_start_it_is_told_with_an_exit_code_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pki, past = create_pki(tmp_path), datetime.now(UTC) - timedelta(days=60)
    for role, name in (("coordinator", "hub"), ("operator", "ann")):
        pki.member(role, name, hosts=("localhost",) if role == "coordinator" else (), now=past)
    (tmp_path / "hub.toml").write_text(
        'listen = "127.0.0.1:0"\ncredentials = "coordinator-hub"\ndatabase = "sqlite:///hub.db"\n'
    )
    ann = str(tmp_path / "operator-ann")
    commands = (
        ["coordinator", "--config", str(tmp_path / "hub.toml")],
        ["job", "list", "--coordinator", "127.0.0.1:1", "--credentials", ann],
    )
    for command in commands:
        assert main(command) == EXIT_CERTIFICATE
        (told,) = (line for line in capsys.readouterr().err.splitlines() if "colonnade:" in line)
        assert "expired on" in told
        assert "renew" in told


@pytest.mark.parametrize("days", [(-10.0, -1.0), (1.0, 10.0)])
def test_a_coordinator_whose_certificate_is_out_of_its_time_is_tried_again(
    tmp_path: Path, days: tuple[float, float]
) -> None:
    """It is renewed at the coordinator, so a party must not take it for an impostor."""
    pki = create_pki(tmp_path)
    pair = leaf(
        pki.signer("coordinators"),
        uris=("spiffe://study/coordinator/hub",),
        dns=("localhost",),
        uses=(SERVER_USE,),
        days=days,
    )
    (tmp_path / "pair.pem").write_bytes(pair.key_pem + pair.chain_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    lab = pki.party()

    async def scene() -> None:
        server = await asyncio.start_server(
            lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context
        )
        port = server.sockets[0].getsockname()[1]
        async with server:
            with pytest.raises(Unreachable, match="time"):
                await asyncio.to_thread(server_identity, f"localhost:{port}", lab)

    asyncio.run(scene())


def test_it_is_still_an_identity_that_is_not_accepted() -> None:
    assert issubclass(CertificateExpired, BadIdentity)
    assert CertificateExpired.exit_code != BadIdentity.exit_code
