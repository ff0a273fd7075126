"""Certificates at work: mutual TLS over loopback, and the matrix of what is refused."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc  # type: ignore[import-untyped,unused-ignore]
import pytest
from cryptography import x509
from support.pki import (
    BANK,
    LAB,
    NOW,
    SERVER_USE,
    SIGNS,
    Pair,
    Pki,
    Signer,
    common_name,
    create_pki,
    leaf,
    new_key,
    pair_of,
    sign,
    signer_from,
)

from colonnade.core.errors import BadIdentity
from colonnade.pki.authority import Credentials, fingerprint
from colonnade.pki.identity import check_certificate, peer_certificate

REFUSED_BY_TLS = "UNAVAILABLE"
REFUSED_BY_US = "UNAUTHENTICATED"


@pytest.fixture(scope="module")
def hub(pki: Pki) -> Credentials:
    return pki.coordinator()


@dataclass
class Desk:
    """A server's one method: tell the caller who it is, or refuse it."""

    denied: set[str] = field(default_factory=set)
    calls: int = 0

    async def whoami(self, request: bytes, context: Any) -> bytes:
        self.calls += 1
        try:
            identity = check_certificate(
                peer_certificate(context.auth_context()),
                now=datetime.now(UTC),
                federation="study",
                role="party",
                denied=frozenset(self.denied),
            )
        except BadIdentity as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
        return identity.uri.encode()


Dial = Callable[[Any], Awaitable[tuple[str, str]]]


async def ask(channel: Any) -> tuple[str, str]:
    """Return the status and what was said with it."""
    try:
        reply = await channel.unary_unary("/test.Desk/WhoAmI")(b"", timeout=30)
    except grpc.aio.AioRpcError as error:
        return error.code().name, error.details() or ""
    return "OK", reply.decode()


def serve(server: Credentials | Pair, root_pem: bytes, desk: Desk, dial: Dial) -> tuple[str, str]:
    """Run a server on a free port, let ``dial`` call it, and return what came of it."""

    async def run() -> tuple[str, str]:
        listener = grpc.aio.server()
        method: Any = grpc.unary_unary_rpc_method_handler(desk.whoami)
        listener.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("test.Desk", {"WhoAmI": method}),)
        )
        credentials = grpc.ssl_server_credentials(
            [(server.key_pem, server.chain_pem)], root_pem, require_client_auth=True
        )
        port = listener.add_secure_port("127.0.0.1:0", credentials)
        await listener.start()
        try:
            return await dial(port)
        finally:
            await listener.stop(None)

    return asyncio.run(run())


def dial_with(
    client: Credentials | Pair | None, root_pem: bytes, *, host: str = "localhost"
) -> Dial:
    async def dial(port: Any) -> tuple[str, str]:
        key, chain = (None, None) if client is None else (client.key_pem, client.chain_pem)
        credentials = grpc.ssl_channel_credentials(root_pem, key, chain)
        async with grpc.aio.secure_channel(f"{host}:{port}", credentials) as channel:
            return await ask(channel)

    return dial


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_party_is_admitted_under_its_own_name(
    pki: Pki, hub: Credentials, lab: Credentials, host: str
) -> None:
    desk = Desk()
    answer = serve(hub, pki.root_pem, desk, dial_with(lab, lab.root_pem, host=host))
    assert answer == ("OK", LAB)
    assert desk.calls == 1


def forge_by_tls(pki: Pki, case: str) -> Pair | None:
    """Return credentials that the handshake itself must refuse."""
    parties, coordinators = pki.signer("parties"), pki.signer("coordinators")
    lab = pki.party("lab")
    match case:
        case "none":
            return None
        case "wrong CA":
            other = create_pki(pki.folder / "other-authority")
            return pair_of(other.party("lab"))
        case "self-signed with the same name":
            return leaf(None, uris=[LAB])
        case "signed by another key in the real authority's name":
            return leaf(replace(parties, key=new_key()), uris=[LAB])
        case "expired":
            return pair_of(pki.member("party", "old", now=NOW - timedelta(days=31)))
        case "not yet valid":
            return pair_of(pki.member("party", "early", now=NOW + timedelta(days=1)))
        case "a coordinator's certificate":
            return pair_of(pki.coordinator())
        case "server use, signed for parties":
            return leaf(parties, uris=[LAB], uses=[SERVER_USE])
        case "server use, signed by an unlimited authority":
            return leaf(pki.lax(), uris=[LAB], uses=[SERVER_USE])
        case "client use, signed for coordinators":
            return leaf(coordinators, uris=[LAB])
        case "signed by a party's leaf":
            return leaf(signer_from(lab), uris=[BANK], cn="not the issuer's empty subject")
        case "signed by an authority under the parties' authority":
            return leaf(_deeper(parties), uris=[BANK])
        case "other federation":
            return leaf(parties, uris=["spiffe://trial/party/lab"])
        case "id as DNS name":
            return leaf(parties, dns=["lab"])
        case "a host beside the id":
            return leaf(parties, uris=[LAB], dns=["localhost"])
    raise AssertionError(case)


def _deeper(parties: Signer) -> Signer:
    key = new_key()
    limits = (x509.BasicConstraints(ca=True, path_length=None), SIGNS)
    made = sign(key, parties, subject=common_name("deeper"), extensions=limits)
    return replace(parties, certificate=made, key=key, above=(made, *parties.above))


@pytest.mark.parametrize(
    "case",
    [
        "none",
        "wrong CA",
        "self-signed with the same name",
        "signed by another key in the real authority's name",
        "expired",
        "not yet valid",
        "a coordinator's certificate",
        "server use, signed for parties",
        "server use, signed by an unlimited authority",
        "client use, signed for coordinators",
        "signed by a party's leaf",
        "signed by an authority under the parties' authority",
        "other federation",
        "id as DNS name",
        "a host beside the id",
    ],
)
def test_tls_refuses_before_any_code_of_ours_runs(pki: Pki, hub: Credentials, case: str) -> None:
    desk = Desk()
    client = forge_by_tls(pki, case)
    status, _ = serve(hub, pki.root_pem, desk, dial_with(client, pki.root_pem))
    assert status == REFUSED_BY_TLS
    assert desk.calls == 0


def test_plaintext_is_refused(pki: Pki, hub: Credentials) -> None:
    async def dial(port: Any) -> tuple[str, str]:
        async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
            return await ask(channel)

    desk = Desk()
    status, _ = serve(hub, pki.root_pem, desk, dial)
    assert status == REFUSED_BY_TLS
    assert desk.calls == 0


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ({}, "0 URIs"),
        ({"cn": LAB}, "0 URIs"),
        ({"dns": ["lab"]}, "0 URIs"),
        ({"uris": [LAB, BANK]}, "2 URIs"),
        ({"uris": [LAB, "https://lab.example/"]}, "2 URIs"),
        ({"uris": ["spiffe://trial/party/lab"]}, "not of the federation study"),
        ({"uris": ["spiffe://study/operator/lab"]}, "role party"),
        ({"uris": ["spiffe://study/party/lab/bank"]}, "not of the form"),
    ],
)
def test_what_tls_admits_without_one_good_identity_is_refused_by_the_check(
    pki: Pki, hub: Credentials, made: dict[str, Any], says: str
) -> None:
    desk = Desk()
    client = leaf(pki.lax(), **made)
    status, told = serve(hub, pki.root_pem, desk, dial_with(client, pki.root_pem))
    assert (status, desk.calls) == (REFUSED_BY_US, 1)
    assert says in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("name", ["parties", "lax"])
def test_what_these_tests_forge_is_admitted_when_nothing_is_wrong_with_it(
    pki: Pki, hub: Credentials, name: str
) -> None:
    signer = pki.lax() if name == "lax" else pki.signer(name)
    client = leaf(signer, uris=[LAB])
    answer = serve(hub, pki.root_pem, Desk(), dial_with(client, pki.root_pem))
    assert answer == ("OK", LAB)


def test_a_denied_key_is_refused_on_a_connection_that_is_open(
    pki: Pki, hub: Credentials, lab: Credentials
) -> None:
    desk = Desk()

    async def dial(port: Any) -> tuple[str, str]:
        credentials = grpc.ssl_channel_credentials(lab.root_pem, lab.key_pem, lab.chain_pem)
        async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
            assert await ask(channel) == ("OK", LAB)
            desk.denied.add(fingerprint(lab.chain_pem))
            return await ask(channel)

    status, told = serve(hub, pki.root_pem, desk, dial)
    assert (status, desk.calls) == (REFUSED_BY_US, 2)
    assert "denied" in told


@pytest.mark.parametrize(
    "case",
    [
        "a party's certificate",
        "client use by an unlimited authority",
        "a host signed for parties",
        "server use signed for parties",
        "another host",
        "wrong CA",
        "expired",
    ],
)
def test_a_party_refuses_to_talk_to_anything_but_its_coordinator(
    pki: Pki, lab: Credentials, case: str
) -> None:
    desk, parties = Desk(), pki.signer("parties")
    names: dict[str, Any] = {"uris": [LAB], "dns": ["localhost"]}
    elsewhere = create_pki(pki.folder / "elsewhere") if case == "wrong CA" else pki
    server: Pair = {
        "a party's certificate": lambda: pair_of(lab),
        "client use by an unlimited authority": lambda: leaf(pki.lax(), **names),
        "a host signed for parties": lambda: leaf(parties, **names),
        "server use signed for parties": lambda: leaf(parties, **names, uses=[SERVER_USE]),
        "another host": lambda: pair_of(pki.member("coordinator", "far", hosts=["far.example"])),
        "wrong CA": lambda: pair_of(elsewhere.coordinator()),
        "expired": lambda: pair_of(
            pki.member("coordinator", "old", hosts=["localhost"], now=NOW - timedelta(days=31))
        ),
    }[case]()
    status, told = serve(server, pki.root_pem, desk, dial_with(lab, lab.root_pem))
    assert status == REFUSED_BY_TLS
    assert "CERTIFICATE_VERIFY_FAILED" in told or "Hostname" in told
    assert desk.calls == 0
