"""Net's end of the socket: it does what the vault asks, and knows nothing of what passes.

What it has: the certificate's key, the coordinator's address, the messages as they go over the
wire. Nothing of it says more than a coordinator knows.
"""

import asyncio
import contextlib
import logging
import secrets
import socket

from colonnade.core.errors import BadIdentity, BadInput, ColonnadeError, Unreachable
from colonnade.party.config import PartyConfig
from colonnade.party.frames import READ_BYTES, BrokenLink, Frames, to_frame
from colonnade.party.net.calls import CoordinatorChannel
from colonnade.party.net.renewal import renewed_if_due
from colonnade.party.net.shown import Shown
from colonnade.pki.attestation import CertificateAttestor
from colonnade.pki.authority import Credentials, load_credentials
from colonnade.pki.identity import PARTY, Identity
from colonnade.v1 import vault_pb2
from colonnade.wire.channels import server_identity

logger = logging.getLogger(__name__)
VERSION = 1


class Relay:
    """Answers the calls of one vault."""

    def __init__(self, config: PartyConfig, shown: Shown | None = None) -> None:
        self._config, self._shown = config, shown or Shown()
        self._connection: CoordinatorChannel | None = None
        self._answering = set[asyncio.Task[None]]()
        self._turn = secrets.randbelow(len(config.addresses))  # whom to dial; spreads parties

    async def serve(self, link: socket.socket) -> None:
        """Answer until the vault ends the connection, which is closed."""
        link.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=link, limit=READ_BYTES)
        frames = Frames()
        try:
            while data := await reader.read(READ_BYTES):
                for call in frames.take(data, vault_pb2.NetCall):
                    task = asyncio.create_task(self._answer(call, writer))
                    self._answering.add(task)
                    task.add_done_callback(self._answering.discard)
        except (BrokenLink, OSError) as error:
            logger.warning("vault_lost %s", error)
        finally:
            for task in self._answering:
                task.cancel()
            await self._hang_up()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, call: vault_pb2.NetCall, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await self._do(call)
        except ColonnadeError as error:
            failed = vault_pb2.Failed(code=error.code, message=str(error))
            answer = vault_pb2.NetAnswer(failed=failed)
        except Exception:
            logger.exception("call_failed call=%s", call.WhichOneof("call"))
            failed = vault_pb2.Failed(code=Unreachable.code, message="net failed; see its log")
            answer = vault_pb2.NetAnswer(failed=failed)
        answer.id = call.id
        with contextlib.suppress(OSError):
            writer.write(to_frame(answer))
            await writer.drain()

    async def _do(self, call: vault_pb2.NetCall) -> vault_pb2.NetAnswer:
        done = vault_pb2.NetAnswer(done=vault_pb2.Done())
        match call.WhichOneof("call"):
            case "dial":
                return await self._dial(call.dial)
            case "enrol":
                return vault_pb2.NetAnswer(message=await self._dialled.enrol(call.enrol))
            case "attach":
                self._dialled.attach()
            case "write":
                await self._dialled.write(call.write)
            case "read":
                if (message := await self._dialled.read()) is None:
                    return vault_pb2.NetAnswer(ended=vault_pb2.Ended())
                return vault_pb2.NetAnswer(message=message)
            case "hang_up":
                await self._hang_up()
            case "attest":
                return vault_pb2.NetAnswer(message=await asyncio.to_thread(self._sign, call.attest))
            case "check_credentials":
                if self._config.credentials is not None:
                    await asyncio.to_thread(load_credentials, self._config.credentials)
            case "monitored":
                await self._shown.show(call.monitored.metrics)
            case "attached":
                self._shown.ready(call.attached.attached)
            case _:
                raise BadInput("the two processes of the party are of different versions")
        return done

    @property
    def _dialled(self) -> CoordinatorChannel:
        if self._connection is None:
            raise Unreachable("the coordinator was not dialled")
        return self._connection

    async def _dial(self, asked: vault_pb2.Dial) -> vault_pb2.NetAnswer:
        """Open a connection, with the certificate as it is on disk by now."""
        if asked.version != VERSION:
            raise BadInput("the two processes of the party are of different versions")
        self._shown.check()
        await self._hang_up()
        config, credentials = self._config, None
        address = config.addresses[self._turn % len(config.addresses)]
        self._turn += 1
        if config.credentials is not None:
            credentials = load_credentials(config.credentials)
            credentials = await renewed_if_due(config.credentials, address, credentials)
            self._shown.certificate_ends = credentials.not_after
        identity, coordinator = await asyncio.to_thread(self._who, credentials, address)
        self._connection = CoordinatorChannel(address, identity, credentials)
        names = vault_pb2.Dialled(identity=identity.uri, coordinator=coordinator.uri)
        return vault_pb2.NetAnswer(dialled=names)

    def _who(self, credentials: Credentials | None, address: str) -> tuple[Identity, Identity]:
        config = self._config
        if credentials is None:
            identity = Identity.from_uri(config.identity)
            return identity, Identity.from_uri(config.coordinator_identity)
        if credentials.identity.role != PARTY:
            raise BadInput(f"the certificate is of {credentials.identity.uri}, which is no party")
        return credentials.identity, server_identity(address, credentials)

    def _sign(self, asked: vault_pb2.Attest) -> bytes:
        folder = self._config.credentials
        if folder is None:
            raise BadIdentity("without TLS this party has no certificate to sign with")
        return CertificateAttestor(lambda: load_credentials(folder), asked.size).attest(
            asked.statement
        )

    async def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
