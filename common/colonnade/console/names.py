"""Identities as people say them."""

from colonnade.core.errors import ColonnadeError
from colonnade.pki.identity import Identity


def who(uri: str) -> str:
    """Return a certificate's name in words; a text that names no identity stays as it is.

    Examples
    --------
    >>> who("spiffe://study/operator/analyst"), who("2026-11")
    ('operator analyst of study', '2026-11')
    """
    try:
        found = Identity.from_uri(uri)
    except ColonnadeError:
        return uri
    return f"{found.role} {found.name} of {found.federation}"
