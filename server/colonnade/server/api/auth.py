"""Who calls: from the certificate that the handshake proved, looked at again for every message."""

import functools
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import grpc
from cryptography import x509

from colonnade.core.errors import BadIdentity, ColonnadeError, PolicyRefused, Unreachable
from colonnade.pki.identity import (
    OPERATOR,
    PARTY,
    Identity,
    check_certificate,
    identity_of,
    parsed,
    peer_certificate,
)
from colonnade.pki.register import load_denied
from colonnade.wire.channels import CLAIM

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_RELOAD_S = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """A peer and the certificate that says who it is; none on an insecure loopback port."""

    identity: Identity
    certificate: x509.Certificate | None


@functools.lru_cache(maxsize=1024)
def _parse(pem: bytes) -> x509.Certificate:
    found = parsed(pem)
    if not isinstance(found, x509.Certificate):
        raise BadIdentity("a request is not a certificate")
    return found


def caller_of(context: Context) -> str:
    """Return the name in the caller's certificate, valid or not; empty without one."""
    try:
        return identity_of(_parse(peer_certificate(context.auth_context()))).name
    except ColonnadeError:
        return ""


@dataclass(slots=True)
class Authenticator:
    """Decides who may call what."""

    federation: str
    denylist: Path | None = None
    insecure: bool = False
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _denied: frozenset[str] = frozenset()
    _looked: float = field(default=-1.0)

    def __post_init__(self) -> None:
        if self.denylist is not None:  # one that cannot be read stops the start
            self._denied, self._looked = load_denied(self.denylist), time.monotonic()

    def party(self, context: Context) -> Caller:
        """Return the calling party."""
        return self._caller(context, (PARTY,))

    def anyone(self, context: Context) -> Caller:
        """Return the calling party or operator."""
        return self._caller(context, (PARTY, OPERATOR))

    def operator(self, context: Context) -> Caller:
        """Return the calling operator; a party may only look."""
        caller = self._caller(context, (PARTY, OPERATOR))
        if caller.identity.role != OPERATOR:
            raise PolicyRefused(f"{caller.identity.uri} is no operator; only operators do this")
        return caller

    def recheck(self, caller: Caller) -> None:
        """Refuse a caller whose certificate has ended or was denied since the stream began."""
        if caller.certificate is not None:
            check_certificate(
                caller.certificate,
                now=self.clock(),
                federation=self.federation,
                role=caller.identity.role,
                denied=self.denied(),
            )

    def denied(self) -> frozenset[str]:
        """Return the denied fingerprints, read again now and then.

        While they cannot be read nobody is let in, and everybody may try again.
        """
        now = time.monotonic()
        if self.denylist is not None and now - self._looked > _RELOAD_S:
            try:
                self._denied, self._looked = load_denied(self.denylist), now
            except ColonnadeError as error:
                logger.error("denylist_unreadable %s", error)
                raise Unreachable("the coordinator cannot read its denylist; see its log") from None
        return self._denied

    def _caller(self, context: Context, roles: tuple[str, ...]) -> Caller:
        if self.insecure:
            claims = dict(context.invocation_metadata() or ())
            identity = Identity.from_uri(str(claims.get(CLAIM, "")))
            if identity.role not in roles or identity.federation != self.federation:
                raise BadIdentity(f"{identity.uri} may not make this call")
            return Caller(identity, None)
        certificate = _parse(peer_certificate(context.auth_context()))
        identity = identity_of(certificate)
        if identity.role not in roles:
            raise BadIdentity(f"{identity.uri} may not make this call")
        caller = Caller(identity, certificate)
        self.recheck(caller)
        return caller
