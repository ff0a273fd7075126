"""The certificates of a federation: an authority, requests, approvals, credentials.

One file travels each way: the request (public) to the authority, the approved bundle (public) back.
A private key never leaves the folder in which it was made.

A member's folder, and the authority's (both 0700, keys 0400)::

    tls/key.pem        private key           authority/root-key.pem          take it offline
    tls/request.csr    to be approved        authority/root.pem
    tls/cert.pem       leaf, intermediate    authority/coordinators-key.pem, coordinators.pem
    tls/root.pem       whom to trust         authority/parties-key.pem, parties.pem

The root signs two intermediates and is not needed again. Each may sign leaves only, of its own
federation (a name constraint on the URI) and for its own use: ``coordinators`` servers; ``parties``
clients (parties and operators), which may name no host. So a member cannot act as a server, a
coordinator's certificate opens no client connection, and the key that approves parties cannot make
a coordinator. All keys are ECDSA P-256, which gRPC's TLS library takes.
"""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from colonnade.core.errors import BadIdentity, BadInput, CertificateExpired
from colonnade.pki.certificates import (
    AUTHORITY,
    COORDINATORS,
    PARTIES,
    Key,
    authority_draft,
    authority_name,
    certificate_pem,
    certificates_from_pem,
    check_chain,
    checked_names,
    federation_of,
    issue,
    leaf_draft,
    lifetime,
    new_key,
    request_from_pem,
    side_of,
)
from colonnade.pki.files import (
    file_faults,
    key_pem,
    read_bounded,
    read_certificate,
    read_key,
    sync_folder,
    write_whole,
)
from colonnade.pki.identity import (
    Identity,
    alternative_names,
    check_part,
    check_window,
    fingerprint,
    fingerprint_from_text,
    identity_of,
)
from colonnade.pki.register import note_issued, revoked_keys

KEY, REQUEST, CERTIFICATE, ROOT = "key.pem", "request.csr", "cert.pem", "root.pem"
ROOT_KEY = "root-key.pem"
AUTHORITY_DAYS = 3650
MAX_DAYS = 365

__all__ = [
    "Credentials",
    "approve_request",
    "create_authority",
    "create_request",
    "fingerprint",
    "install_certificate",
    "load_credentials",
    "renewal_request",
    "split_bundle",
]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a member opens or accepts a connection with; the times are the leaf's."""

    key_pem: bytes = field(repr=False)
    chain_pem: bytes
    root_pem: bytes
    identity: Identity
    not_after: datetime
    not_before: datetime


def create_authority(folder: Path, federation: str, *, now: datetime) -> bytes:
    """Make the root and both intermediates of a federation; return the root's certificate."""
    check_part("federation", federation)
    with file_faults(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadInput(f"{folder} is not empty; an authority is made in a new folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".authority-"))  # mode 0700
        try:
            root = _write_authority(staging, federation, now=now)
            staging.rename(folder)  # the whole authority or none
            sync_folder(folder.parent)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return certificate_pem(root)


def create_request(folder: Path, identity: Identity, hosts: Sequence[str] = ()) -> bytes:
    """Write a request for a certificate and return it; make the key unless there is one.

    Asking again keeps the key: a member that renews goes on working until the new certificate is
    installed, and the fingerprint stays the one that the authority knows.
    """
    names = checked_names(identity, hosts)
    with file_faults(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for earlier in (folder / CERTIFICATE, folder / REQUEST):
            if earlier.exists() and (other := identity_of(read_bounded(earlier))) != identity:
                raise BadIdentity(f"{folder} belongs to {other.uri}; use another folder")
        if not (path := folder / KEY).exists():
            write_whole(path, key_pem(new_key()), mode=0o400)
        request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
        request = request.add_extension(x509.SubjectAlternativeName(names), critical=True)
        signed = request.sign(read_key(path), hashes.SHA256())
        pem = signed.public_bytes(serialization.Encoding.PEM)
        write_whole(folder / REQUEST, pem)
    return pem


def approve_request(
    authority: Path,
    csr_pem: bytes,
    *,
    now: datetime,
    days: int = 30,
    expect_fingerprint: str | None = None,
) -> bytes:
    """Issue the certificate that a request asks for; return leaf and intermediate as PEM.

    Only the checked names are taken from the request; use, life and everything else are ours.
    """
    request = request_from_pem(csr_pem)
    identity = request.identity
    if expect_fingerprint is not None:
        expected = fingerprint_from_text(expect_fingerprint)
        if expected != (found := fingerprint(csr_pem)):
            raise BadIdentity(f"the key's fingerprint is {found}, not {expected}")
    if not 1 <= days <= MAX_DAYS:
        raise BadInput(f"a certificate lives 1 to {MAX_DAYS} days, not {days}")
    if fingerprint(csr_pem) in revoked_keys(authority):
        raise BadIdentity(f"the key of {identity.uri} was revoked; it has to make a new one")
    side = side_of(identity)
    with file_faults(authority):
        issuer = read_certificate(authority / f"{side}.pem")
        root = read_certificate(authority / ROOT)
        key = read_key(authority / f"{side}-key.pem")
    if identity.federation != (ours := federation_of(issuer)):
        raise BadIdentity(f"{identity.uri} asks for another federation; this one is {ours}")
    leaf = issue(leaf_draft(request), issuer.subject, key, life=lifetime(now, days))
    check_window(issuer, "this authority", now=now)
    if leaf.not_valid_after_utc > (end := issuer.not_valid_after_utc):
        raise BadIdentity(f"this authority itself ends on {end:%Y-%m-%d}; ask for fewer days")
    check_chain([leaf, issuer], root)  # the three files may have been mixed up
    with file_faults(authority):
        note_issued(authority, leaf)
    return certificate_pem(leaf, issuer)


def install_certificate(folder: Path, chain_pem: bytes, root_pem: bytes) -> Identity:
    """Put an approved certificate beside its key, if key, certificate and chain belong together."""
    chain = certificates_from_pem(chain_pem, "the chain")
    root = certificates_from_pem(root_pem, "the root")[0]
    identity = check_chain(chain, root)
    with file_faults(folder):
        _check_key(read_key(folder / KEY), chain[0], folder)
        if (path := folder / REQUEST).exists():
            asked = identity_of(read_bounded(path))
            if asked != identity:
                raise BadIdentity(f"the certificate is for {identity.uri}, not for {asked.uri}")
        if (path := folder / ROOT).exists() and read_certificate(path) != root:
            raise BadIdentity(
                f"a root other than {path} signed this certificate; remove that file only if the "
                "federation announced a new root"
            )
        write_whole(path, certificate_pem(root))
        write_whole(folder / CERTIFICATE, certificate_pem(*chain))
    return identity


def split_bundle(pem: bytes, where: Path) -> tuple[bytes, bytes]:
    """Return chain and root of the one file that an approval writes: leaf, intermediate, root."""
    found = certificates_from_pem(pem, where)
    if len(found) != 3:
        raise BadInput(f"{where} holds {len(found)} certificates, not leaf, intermediate and root")
    return certificate_pem(*found[:2]), certificate_pem(found[2])


def load_credentials(folder: Path, *, now: datetime | None = None) -> Credentials:
    """Read a member's credentials, or say in one line why they would fail (default: right now).

    A peer learns from a failed TLS handshake only that it failed, so a member looks at its own
    certificate before it dials.
    """
    with file_faults(folder):
        for name, verb in ((KEY, "request"), (CERTIFICATE, "install"), (ROOT, "install")):
            if not (folder / name).exists():
                raise BadInput(f"{folder / name} is missing; see colonnade pki {verb}")
        key = read_key(folder / KEY)
        pem = read_bounded(folder / CERTIFICATE)
        chain = certificates_from_pem(pem, folder / CERTIFICATE)
        root = read_certificate(folder / ROOT)
    identity = check_chain(chain, root)
    _check_key(key, chain[0], folder)
    try:
        check_window(chain[0], identity.uri, now=now or datetime.now(UTC))
    except CertificateExpired as error:
        raise CertificateExpired(
            f"{error}; unless this machine's clock is wrong, renew what is in {folder}: "
            "colonnade pki renew"
        ) from None
    return Credentials(
        key_pem=key_pem(key),
        chain_pem=certificate_pem(*chain),
        root_pem=certificate_pem(root),
        identity=identity,
        not_after=chain[0].not_valid_after_utc,
        not_before=chain[0].not_valid_before_utc,
    )


def renewal_request(folder: Path) -> bytes:
    """Write a request for what a member's certificate says, with the same key, and return it."""
    with file_faults(folder):
        leaf = certificates_from_pem(read_bounded(folder / CERTIFICATE), folder / CERTIFICATE)[0]
    hosts = [
        str(name.value)
        for name in alternative_names(leaf)
        if isinstance(name, x509.DNSName | x509.IPAddress)
    ]
    return create_request(folder, identity_of(leaf), hosts)


def _write_authority(folder: Path, federation: str, *, now: datetime) -> x509.Certificate:
    keys = {name: new_key() for name in (AUTHORITY, COORDINATORS, PARTIES)}
    root, life = authority_name(AUTHORITY, federation), lifetime(now, AUTHORITY_DAYS)
    for name, key in keys.items():
        draft = authority_draft(name, federation, key.public_key())
        signed = issue(draft, root, keys[AUTHORITY], life=life)
        write_whole(folder / f"{name}.pem", certificate_pem(signed))
        write_whole(folder / f"{name}-key.pem", key_pem(key), mode=0o400)
    return read_certificate(folder / ROOT)


def _check_key(key: Key, leaf: x509.Certificate, folder: Path) -> None:
    if key.public_key() != leaf.public_key():
        raise BadIdentity(f"the certificate was issued to another key than {folder / KEY}")
