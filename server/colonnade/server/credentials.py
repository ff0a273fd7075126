"""The coordinator's own certificate and its denylist, taken up anew while it runs."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

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

    def server_credentials(self) -> grpc.ServerCredentials:
        """Return what gRPC asks for the certificate at every handshake."""
        return grpc.dynamic_ssl_server_credentials(
            self._configuration(), self._configuration, require_client_authentication=True
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
        """Say so in the log if the certificate soon ends."""
        if (left := self.days()) <= WARN_DAYS:
            ends = f"{self.current.not_after:%Y-%m-%d}"
            logger.warning("certificate_ends days=%d on=%s renew it, then send SIGHUP", left, ends)

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        found = self.current
        return grpc.ssl_server_certificate_configuration(
            [(found.key_pem, found.chain_pem)], root_certificates=found.root_pem
        )
