"""Identities as people say them."""

from colonnade.core.errors import ColonnadeError
from colonnade.pki.identity import Identity


def starting(text: str) -> str:
    """Return words as a sentence or a heading begins with them."""
    return text[:1].upper() + text[1:]


def symbols(text: str) -> str:
    r"""Return amounts as the pages write them, with Greek letters.

    Examples
    --------
    >>> symbols("epsilon 1 (rho 0.5)")
    'ε\xa01 (ρ\xa00.5)'
    """
    return text.replace("epsilon ", "ε\u00a0").replace("rho ", "ρ\u00a0")


def whose(cap: str) -> str:
    """Return whose a cap is, with an operator's certificate in words.

    Examples
    --------
    >>> whose("operator spiffe://study/operator/analyst"), whose("month 2026-11")
    ('operator analyst of study', 'month 2026-11')
    """
    scope, _, name = cap.partition(" ")
    return who(name) if scope == "operator" and who(name) != name else cap


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
