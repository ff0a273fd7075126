"""Renewals that a coordinator approves by itself, where its configuration lends it the authority.

Only the intermediate that signs parties and operators is needed (``parties.pem`` and its key, the
root's certificate and ``revoked.txt``); with it a coordinator can also make members. So this is off
unless an organization that trusts its coordinator so far says otherwise. A renewal changes no name
and no key: it is for the caller itself, whose certificate is valid and soon ends.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from colonnade.core.errors import BadInput, ColonnadeError, PolicyRefused
from colonnade.pki.authority import approve_request
from colonnade.pki.certificates import request_from_pem
from colonnade.pki.identity import fingerprint, identity_of
from colonnade.pki.register import WARN_DAYS, days_left

_MAX_REQUEST_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class Renewals:
    """Approves renewals; without an authority none."""

    authority: Path | None = None
    days: int = 30

    def approve(self, certificate: x509.Certificate | None, request: bytes) -> bytes:
        """Return the caller's new chain, or refuse with the reason."""
        if self.authority is None or certificate is None:
            raise PolicyRefused("this coordinator renews no certificates; ask the authority")
        now = datetime.now(UTC)
        if len(request) > _MAX_REQUEST_BYTES:
            raise BadInput("the request is too large")
        asked = request_from_pem(request).identity
        if asked != identity_of(certificate) or fingerprint(request) != fingerprint(certificate):
            raise PolicyRefused("a renewal is for the caller's own name and key")
        if (left := days_left(certificate.not_valid_after_utc, now)) > WARN_DAYS:
            raise PolicyRefused(
                f"the certificate is valid for {left} days; it is renewed from {WARN_DAYS} days on"
            )
        try:
            return approve_request(self.authority, request, now=now, days=self.days)
        except ColonnadeError as error:
            raise PolicyRefused(f"the authority refused: {error.for_peers}") from None
