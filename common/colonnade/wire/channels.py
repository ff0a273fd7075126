"""Channels to a coordinator, and who answers there."""

import socket
import ssl
import tempfile
from pathlib import Path

import grpc

from colonnade.core.errors import BadIdentity, Unreachable
from colonnade.wire.identity import COORDINATOR, Identity, identity_of
from colonnade.wire.limits import client_options, require_loopback, split_address
from colonnade.wire.pki import Credentials

# Says who calls where there are no certificates: on loopback only.
CLAIM = "colonnade-identity"
_TIMEOUT_S = 10.0


def open_channel(address: str, credentials: Credentials | None) -> grpc.aio.Channel:
    """Return a channel to the coordinator; without credentials on loopback only."""
    if credentials is None:
        require_loopback(address)
        return grpc.aio.insecure_channel(address, options=client_options())
    tls = grpc.ssl_channel_credentials(
        root_certificates=credentials.root_pem,
        private_key=credentials.key_pem,
        certificate_chain=credentials.chain_pem,
    )
    return grpc.aio.secure_channel(address, tls, options=client_options())


def claim(identity: Identity | None) -> tuple[tuple[str, str], ...] | None:
    """Return the metadata that says who calls without certificates."""
    return None if identity is None else ((CLAIM, identity.uri),)


def server_identity(address: str, credentials: Credentials) -> Identity:
    """Dial the coordinator once and return who it is, or say why it cannot be trusted or reached.

    gRPC reports every failed handshake as unavailable; this names the cause.
    """
    host, port = split_address(address)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=credentials.root_pem.decode())
    context.set_alpn_protocols(["h2"])
    with tempfile.TemporaryDirectory(prefix="colonnade-") as folder:  # mode 0700
        chain, key = Path(folder, "chain.pem"), Path(folder, "key.pem")
        chain.write_bytes(credentials.chain_pem)
        key.write_bytes(credentials.key_pem)
        context.load_cert_chain(chain, key)
    try:
        with (
            socket.create_connection((host, port), timeout=_TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            leaf = secure.getpeercert(binary_form=True) or b""
    except ssl.SSLCertVerificationError as error:
        raise BadIdentity(f"{address} is not to be trusted: {error.verify_message}") from None
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):  # stopped, restarted, or not one of ours
        raise Unreachable(f"{address} hung up in the TLS handshake") from None
    except ssl.SSLError as error:
        raise BadIdentity(f"the TLS handshake with {address} failed: {error.reason}") from None
    except OSError as error:
        what = error.strerror or "no answer in time"
        raise Unreachable(f"{address} cannot be reached: {what}; see colonnade preflight") from None
    found = identity_of(leaf)
    if found.role != COORDINATOR or found.federation != credentials.identity.federation:
        raise BadIdentity(f"{address} is {found.uri}, no coordinator of this federation")
    return found
