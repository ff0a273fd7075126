"""The coordinator's own certificate and its denylist, taken up anew while it runs."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc

from colonnade.core.errors import BadInput, ColonnadeError
from colonnade.pki.authority import Credentials, load_credentials
from colonnade.pki.register import WARN_DAYS, days_left, load_denied

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class LiveCredentials:
    """Credentials that every new connection is opened with; `reload` changes them."""

    current: Credentials
    folder: Path | None = None  # None for those that stay as they are
    denylist: Path | None = None
    _told: Credentials | None = None

    def server_credentials(self) -> grpc.ServerCredentials:
        """Return what gRPC asks at every handshake whether there is a new certificate."""
        self._told = self.current
        news: Any = self._news  # its type says that there is always one; gRPC takes None too
        return grpc.dynamic_ssl_server_credentials(
            self._configuration(), news, require_client_authentication=True
        )

    def reload(self) -> None:
        """Take up certificate and denylist as they are on disk: both, or neither and say why."""
        try:
            if self.denylist is not None:
                load_denied(self.denylist)
            if self.folder is not None:
                found = load_credentials(self.folder)
                if found.identity != self.current.identity:
                    raise BadInput(f"{self.folder} is now of {found.identity.uri}; start again")
                self.current = found
        except ColonnadeError as error:
            logger.error("reload_refused everything stays as it was: %s", error)
        else:
            logger.info("reloaded certificate_days=%d", self.days())
            self.warn()

    def days(self) -> int:
        """Return how many days the certificate is valid yet."""
        return days_left(self.current.not_after, datetime.now(UTC))

    def warn(self) -> None:
        """Log a warning if the certificate soon ends."""
        if (left := self.days()) <= WARN_DAYS:
            ends = f"{self.current.not_after:%Y-%m-%d}"
            logger.warning("certificate_ends days=%d on=%s renew it, then send SIGHUP", left, ends)

    def _news(self) -> grpc.ServerCertificateConfiguration | None:
        """Return a certificate that gRPC has not had yet, or None.

        A configuration takes the place of the one before, even if it is the same, while other
        handshakes use that: gRPC 1.85 crashes when many of them are cut off then.
        """
        if self._told is self.current:
            return None
        self._told = self.current
        return self._configuration()

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        found = self.current
        return grpc.ssl_server_certificate_configuration(
            [(found.key_pem, found.chain_pem)], root_certificates=found.root_pem
        )
