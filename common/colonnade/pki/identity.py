"""Who a peer is: one URI in its certificate, and nothing else.

``spiffe://<federation>/<role>/<name>``, exactly one, as a typed URI among the subject's alternative
names. Common names, DNS names and message fields never say who somebody is.

TLS checks the signature chain when a connection opens and never again, so an expired or stolen
certificate keeps working on an open connection. `check_certificate` is therefore called for every
call, with the certificate that the handshake proved.
"""

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization

from colonnade.core.errors import BadIdentity, CertificateExpired

COORDINATOR, PARTY, OPERATOR = "coordinator", "party", "operator"
ROLES = (COORDINATOR, PARTY, OPERATOR)

Named = x509.Certificate | x509.CertificateSigningRequest

# What the parser raises over hostile bytes; most of these share no base class.
UNREADABLE = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)

# A letter or digit at both ends: a name may become a file name or an argument, and neither ".."
# nor "-rf" should be one.
_PART = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?")
_URI = re.compile(r"spiffe://([^/]*)/([^/]*)/([^/]*)")
_FINGERPRINT = re.compile(r"[0-9A-F]{64}")


@dataclass(frozen=True, slots=True)
class Identity:
    """A member of a federation. All three parts are public."""

    federation: str
    role: str  # one of ROLES; an operator submits jobs
    name: str

    def __post_init__(self) -> None:
        check_part("federation", self.federation)
        check_part("name", self.name)
        if self.role not in ROLES:
            raise BadIdentity(f"the role {quoted(self.role)} is not one of {', '.join(ROLES)}")

    @property
    def uri(self) -> str:
        """Return the identity as certificates carry it."""
        return f"spiffe://{self.federation}/{self.role}/{self.name}"

    @classmethod
    def from_uri(cls, uri: str) -> Self:
        """Read an identity; any other spelling of the same thing is refused."""
        if (parts := _URI.fullmatch(uri)) is None:
            raise BadIdentity(f"{quoted(uri)} is not of the form spiffe://federation/role/name")
        return cls(*parts.groups())


def check_part(what: str, text: str) -> None:
    """Refuse a federation's or a member's name that is outside the grammar."""
    if _PART.fullmatch(text) is None:
        raise BadIdentity(
            f"the {what} {quoted(text)} must have 1 to 63 lower-case letters, digits, '-' and '.', "
            "with a letter or digit at both ends"
        )


def identity_of(certificate: bytes | Named) -> Identity:
    """Return who a certificate (PEM, the first one, or DER) was issued to."""
    names = alternative_names(parsed(certificate))
    uris = [name.value for name in names if isinstance(name, x509.UniformResourceIdentifier)]
    if len(uris) != 1:
        raise BadIdentity(f"the certificate names {len(uris)} URIs instead of exactly one")
    return Identity.from_uri(uris[0])


def check_certificate(
    certificate: bytes | x509.Certificate,
    *,
    now: datetime,
    federation: str,
    role: str,
    denied: frozenset[str],
) -> Identity:
    """Return the peer's identity, or refuse the call.

    The signature chain is not checked here: the certificate must come from a TLS handshake that
    did. ``denied`` holds fingerprints of keys, as `fingerprint` prints them, or of certificates, as
    other tools do; either refuses.
    """
    leaf = parsed(certificate)
    if not isinstance(leaf, x509.Certificate):
        raise BadIdentity("a request is not a certificate")
    identity = _identity_of_leaf(leaf)
    check_window(leaf, identity.uri, now=now)
    if identity.federation != federation:
        raise BadIdentity(f"{identity.uri} is not of the federation {federation}")
    if identity.role != role:
        raise BadIdentity(f"{identity.uri} is not a certificate of role {role}")
    if denied and not _prints(leaf).isdisjoint(denied):
        raise BadIdentity(f"{identity.uri} was denied by its fingerprint {fingerprint(leaf)}")
    return identity


@functools.lru_cache(maxsize=1024)  # the same certificate is looked at for every message
def _identity_of_leaf(leaf: x509.Certificate) -> Identity:
    return identity_of(leaf)


@functools.lru_cache(maxsize=1024)
def _prints(leaf: x509.Certificate) -> frozenset[str]:
    return frozenset((fingerprint(leaf), _colons(leaf.fingerprint(hashes.SHA256()))))


def check_window(certificate: x509.Certificate, who: str, *, now: datetime) -> None:
    """Refuse a certificate outside its time."""
    if now.tzinfo is None:
        raise ValueError("now needs a time zone")
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begin:
        raise CertificateExpired(
            f"the certificate of {who} is not valid before {begin:%Y-%m-%d %H:%M} UTC"
        )
    if now > end:
        raise CertificateExpired(f"the certificate of {who} expired on {end:%Y-%m-%d %H:%M} UTC")


def peer_certificate(auth_context: Mapping[str, Iterable[bytes]]) -> bytes:
    """Return the PEM certificate that the peer proved, from a servicer's ``auth_context()``."""
    found = list(auth_context.get("x509_pem_cert", ()))
    if len(found) != 1:
        raise BadIdentity("the peer showed no certificate")
    return found[0]


def fingerprint(holder: bytes | Named) -> str:
    """Return the SHA-256 of the public key (DER, SubjectPublicKeyInfo) in upper-case hex pairs.

    Of the key, not of the file: a request and every certificate that renews it share one
    fingerprint, so that what was read out when the request was approved can be compared for ever.
    """
    try:
        key = parsed(holder).public_key()
    except UNREADABLE:
        raise BadIdentity("the public key of the certificate cannot be read") from None
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return _colons(hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).digest())


def fingerprint_from_text(text: str) -> str:
    """Read a fingerprint, with or without colons, in either case."""
    digits = text.strip().replace(":", "").upper()
    if _FINGERPRINT.fullmatch(digits) is None:
        raise BadIdentity(f"{quoted(text)} is not a SHA-256 fingerprint: 32 pairs of hex digits")
    return _colons(bytes.fromhex(digits))


def parsed(holder: bytes | Named) -> Named:
    """Return a certificate (PEM or DER) or a request (PEM) as an object."""
    if not isinstance(holder, bytes):
        return holder
    try:
        if b"CERTIFICATE REQUEST-----" in holder:
            return x509.load_pem_x509_csr(holder)
        if b"-----BEGIN" in holder:
            return x509.load_pem_x509_certificate(holder)
        return x509.load_der_x509_certificate(holder)
    except UNREADABLE:
        raise BadIdentity("this is not a certificate that can be read") from None


def alternative_names(holder: Named) -> list[x509.GeneralName]:
    """Return the typed alternative names of a certificate or a request."""
    try:
        found = holder.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    except UNREADABLE:
        raise BadIdentity("the extensions of the certificate cannot be read") from None
    return list(found.value)


def quoted(text: str) -> str:
    """Return text from elsewhere, short and safe to print on one line."""
    return ascii(text if len(text) <= 80 else text[:77] + "...")


def _colons(digest: bytes) -> str:
    return digest.hex(":").upper()
