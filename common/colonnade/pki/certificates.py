"""X.509 as a federation uses it: which names, uses and limits a certificate has, and the checks.

The two intermediates are limited three ways, and TLS libraries enforce each: they sign leaves only
(path length 0), for one use (server or client), and for one federation (a name constraint on the
URI); the one for clients may name no host.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from colonnade.core.errors import BadIdentity, BadInput
from colonnade.pki.identity import (
    COORDINATOR,
    UNREADABLE,
    Identity,
    alternative_names,
    identity_of,
    quoted,
)

AUTHORITY, COORDINATORS, PARTIES = "root", "coordinators", "parties"
USES = {COORDINATORS: ExtendedKeyUsageOID.SERVER_AUTH, PARTIES: ExtendedKeyUsageOID.CLIENT_AUTH}

Key = ec.EllipticCurvePrivateKey
PublicKey = ec.EllipticCurvePublicKey
Extensions = Sequence[tuple[x509.ExtensionType, bool]]  # with "critical"

_SKEW = timedelta(minutes=5)  # members' clocks may be behind the authority's
_MAX_HOSTS = 32
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
# The last label is no number: a mistyped address must not become a DNS name.
_HOST = re.compile(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)*(?![0-9]+\Z){_LABEL}")


@dataclass(frozen=True, slots=True)
class CertificateDraft:
    """What is about to be signed: the public facts of one certificate."""

    subject: x509.Name
    public_key: PublicKey
    extensions: Extensions


@dataclass(frozen=True, slots=True)
class Request:
    """What a checked request asks for."""

    identity: Identity
    names: Sequence[x509.GeneralName]
    public_key: PublicKey


def new_key() -> Key:
    """Return a fresh key from the operating system's entropy."""
    return ec.generate_private_key(ec.SECP256R1())


def lifetime(now: datetime, days: int) -> tuple[datetime, datetime]:
    """Return begin and end of a certificate issued now."""
    if now.tzinfo is None:
        raise ValueError("now needs a time zone")
    start = now.astimezone(UTC).replace(microsecond=0)
    return start - _SKEW, start + timedelta(days=days)


def issue(
    draft: CertificateDraft, issuer: x509.Name, key: Key, *, life: tuple[datetime, datetime]
) -> x509.Certificate:
    """Sign a certificate with a random serial number."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(draft.subject)
        .issuer_name(issuer)
        .public_key(draft.public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(life[0])
        .not_valid_after(life[1])
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(draft.public_key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
    )
    for extension, critical in draft.extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(key, hashes.SHA256())


def authority_draft(name: str, federation: str, public_key: PublicKey) -> CertificateDraft:
    """Return the root or one of the two intermediates, unsigned."""
    limits: list[tuple[x509.ExtensionType, bool]] = [(_key_usage(ca=True), True)]
    if name == AUTHORITY:
        limits.append((x509.BasicConstraints(ca=True, path_length=1), True))
    else:
        limits.append((x509.BasicConstraints(ca=True, path_length=0), True))
        limits.append((x509.ExtendedKeyUsage([USES[name]]), False))
        limits.append((_scope(name, federation), True))
    return CertificateDraft(authority_name(name, federation), public_key, limits)


def authority_name(name: str, federation: str) -> x509.Name:
    """Return the subject of the root or of an intermediate."""
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, federation),
            x509.NameAttribute(NameOID.COMMON_NAME, f"Colonnade {name}"),
        ]
    )


def leaf_draft(request: Request) -> CertificateDraft:
    """Return a member's certificate, unsigned: the checked names, and all else by its role."""
    extensions: Extensions = [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_key_usage(ca=False), True),
        (x509.ExtendedKeyUsage([USES[side_of(request.identity)]]), False),
        (x509.SubjectAlternativeName(request.names), True),  # critical, as the subject is empty
    ]
    return CertificateDraft(x509.Name([]), request.public_key, extensions)


def federation_of(issuer: x509.Certificate) -> str:
    """Return the one federation that an intermediate may sign for."""
    try:
        limits = issuer.extensions.get_extension_for_class(x509.NameConstraints).value
        (permitted,) = list(limits.permitted_subtrees or [])
    except (x509.ExtensionNotFound, *UNREADABLE):
        raise BadIdentity("the authority's certificate is not limited to one federation") from None
    return str(permitted.value)


def side_of(identity: Identity) -> str:
    """Return which intermediate signs for a member."""
    return COORDINATORS if identity.role == COORDINATOR else PARTIES


def checked_names(identity: Identity, hosts: Iterable[str]) -> list[x509.GeneralName]:
    """Return the names that a certificate may carry: the identity, and a coordinator's hosts."""
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(identity.uri)]
    for host in dict.fromkeys(hosts):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            if _HOST.fullmatch(host) is None:
                raise BadIdentity(f"{quoted(host)} is neither a host name nor an address") from None
            names.append(x509.DNSName(host))
    if identity.role != COORDINATOR and len(names) > 1:
        raise BadIdentity(f"{identity.uri} may name no host; only a coordinator listens")
    if identity.role == COORDINATOR and not 2 <= len(names) <= _MAX_HOSTS + 1:
        raise BadIdentity(f"{identity.uri} needs 1 to {_MAX_HOSTS} hosts to be reached at")
    return names


def check_chain(chain: Sequence[x509.Certificate], root: x509.Certificate) -> Identity:
    """Refuse a leaf and an intermediate that do not lead to the root; return whose leaf it is."""
    if len(chain) != 2:
        raise BadIdentity(f"the chain has {len(chain)} certificates, not leaf and intermediate")
    identity = identity_of(chain[0])
    try:
        for child, parent in ((chain[0], chain[1]), (chain[1], root), (root, root)):
            child.verify_directly_issued_by(parent)
    except (InvalidSignature, *UNREADABLE):
        raise BadIdentity(f"the certificate of {identity.uri} does not lead to its root") from None
    if is_authority(chain[0]) or not (is_authority(chain[1]) and is_authority(root)):
        raise BadIdentity(f"the certificate of {identity.uri} is not signed by an authority")
    if uses_of(chain[0]) != [USES[side_of(identity)]]:
        raise BadIdentity(f"the certificate of {identity.uri} is not for use by a {identity.role}")
    return identity


def is_authority(certificate: x509.Certificate) -> bool:
    """Return whether a certificate may sign others."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, *UNREADABLE):
        return False


def uses_of(certificate: x509.Certificate) -> list[x509.ObjectIdentifier]:
    """Return what a certificate may be used for; nothing if it does not say so readably."""
    try:
        return list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except (x509.ExtensionNotFound, *UNREADABLE):
        return []


def request_from_pem(pem: bytes) -> Request:
    """Read a request that its own key signed, and check everything that it asks for."""
    try:
        request = x509.load_pem_x509_csr(pem)
        key = request.public_key()
        signed = request.is_signature_valid
    except UNREADABLE:
        raise BadInput("the request cannot be read; give the file that pki request made") from None
    if not isinstance(key, PublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise BadIdentity("the request's key is not ECDSA P-256")
    if not signed:
        raise BadIdentity("the request is not signed by its own key; it was changed on the way")
    identity, hosts = identity_of(request), []
    for name in alternative_names(request):
        if isinstance(name, x509.DNSName | x509.IPAddress):
            hosts.append(str(name.value))
        elif not isinstance(name, x509.UniformResourceIdentifier):
            raise BadIdentity(f"a request may not carry names of type {type(name).__name__}")
    return Request(identity, checked_names(identity, hosts), key)


def certificates_from_pem(pem: bytes, where: Path | str) -> list[x509.Certificate]:
    """Read one or more certificates; a file with a private key among them is refused."""
    if b"PRIVATE KEY" in pem:
        raise BadInput(f"{where} holds a private key, which never leaves its own folder")
    try:
        return x509.load_pem_x509_certificates(pem)
    except UNREADABLE:
        raise BadInput(f"{where} holds no certificate that can be read") from None


def certificate_pem(*certificates: x509.Certificate) -> bytes:
    """Return certificates as PEM, in order."""
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        key_cert_sign=ca,
        crl_sign=ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _scope(name: str, federation: str) -> x509.NameConstraints:
    no_hosts = [
        x509.DNSName(""),
        x509.IPAddress(ipaddress.ip_network("0.0.0.0/0")),
        x509.IPAddress(ipaddress.ip_network("::/0")),
    ]
    return x509.NameConstraints(
        permitted_subtrees=[x509.UniformResourceIdentifier(federation)],
        excluded_subtrees=no_hosts if name == PARTIES else None,
    )
