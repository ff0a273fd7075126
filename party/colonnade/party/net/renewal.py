"""Renew a party's certificate over its connection, with the same key, while it is still valid."""

import logging
from datetime import UTC, datetime
from pathlib import Path

from colonnade.core.errors import ColonnadeError
from colonnade.party.net.calls import request_renewal
from colonnade.pki.authority import (
    Credentials,
    install_certificate,
    load_credentials,
    renewal_request,
)
from colonnade.pki.register import WARN_DAYS, days_left

logger = logging.getLogger(__name__)


async def renew(folder: Path, address: str) -> Credentials:
    """Have the coordinator renew the certificate in ``folder``, and install it."""
    credentials = load_credentials(folder)
    chain = await request_renewal(address, credentials, renewal_request(folder))
    install_certificate(folder, chain, credentials.root_pem)
    return load_credentials(folder)


async def renewed_if_due(folder: Path, address: str, credentials: Credentials) -> Credentials:
    """Return credentials that last: warn about ones that soon end, and renew them if allowed."""
    left = days_left(credentials.not_after, datetime.now(UTC))
    if left > WARN_DAYS:
        return credentials
    try:
        found = await renew(folder, address)
    except ColonnadeError as error:
        ends = f"{credentials.not_after:%Y-%m-%d}"
        logger.warning("certificate_ends days=%d on=%s not_renewed=%r", left, ends, str(error))
        return credentials
    logger.info("certificate_renewed until=%s", f"{found.not_after:%Y-%m-%d}")
    return found
