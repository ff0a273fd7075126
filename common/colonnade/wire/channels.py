"""Channels to a coordinator, and who answers there."""

import os
import socket
import ssl

import grpc

from colonnade.core.errors import BadIdentity, CertificateExpired, Unreachable
from colonnade.pki.authority import Credentials
from colonnade.pki.identity import COORDINATOR, Identity, identity_of
from colonnade.wire.limits import client_options, require_loopback, split_address

# Says who calls where there are no certificates: on loopback only.
CLAIM = "colonnade-identity"
_TIMEOUT_S = 10.0
_OUT_OF_TIME = (9, 10)  # OpenSSL: not yet valid, expired


def open_channel(address: str, credentials: Credentials | None) -> grpc.aio.Channel:
    """Return a channel to the coordinator; without credentials on loopback only."""
    if credentials is None:
        require_loopback(address)
        return grpc.aio.insecure_channel(address, options=client_options())
    return grpc.aio.secure_channel(address, tls_of(credentials), options=client_options())


def tls_of(credentials: Credentials) -> grpc.ChannelCredentials:
    """Return a member's credentials as gRPC takes them."""
    return grpc.ssl_channel_credentials(
        root_certificates=credentials.root_pem,
        private_key=credentials.key_pem,
        certificate_chain=credentials.chain_pem,
    )


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
    with os.fdopen(os.memfd_create("credentials"), "wb") as memory:
        # `ssl` reads keys from files only; this one is on no disk.
        memory.write(credentials.chain_pem + credentials.key_pem)
        memory.flush()
        context.load_cert_chain(f"/proc/self/fd/{memory.fileno()}")
    try:
        with (
            socket.create_connection((host, port), timeout=_TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            leaf = secure.getpeercert(binary_form=True) or b""
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _OUT_OF_TIME:  # fixed at the coordinator, so worth another try
            raise Unreachable(
                f"{address} shows a certificate out of its time ({error.verify_message}); it has "
                "to be renewed there, unless this machine's clock is wrong"
            ) from None
        raise BadIdentity(f"{address} is not to be trusted: {error.verify_message}") from None
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):  # stopped, restarted, or not one of ours
        raise Unreachable(f"{address} hung up in the TLS handshake") from None
    except ssl.SSLError as error:
        if "CERTIFICATE_EXPIRED" in (error.reason or ""):
            raise CertificateExpired(
                f"{address} takes the certificate of {credentials.identity.uri} for expired; renew "
                "it, or compare the clocks"
            ) from None
        raise BadIdentity(f"the TLS handshake with {address} failed: {error.reason}") from None
    except OSError as error:
        what = error.strerror or "no answer in time"
        raise Unreachable(f"{address} cannot be reached: {what}; see colonnade preflight") from None
    found = identity_of(leaf)
    if found.role != COORDINATOR or found.federation != credentials.identity.federation:
        raise BadIdentity(f"{address} is {found.uri}, no coordinator of this federation")
    return found
