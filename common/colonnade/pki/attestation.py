"""Attestations: statements under a member's certificate, for peers that it never connects to.

Parties talk through the coordinator, so no handshake tells one who another is. An attestation does:
the chain of the member's certificate and a signature of its key, padded to one size.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from colonnade.core.errors import BadIdentity
from colonnade.pki.authority import Credentials
from colonnade.pki.certificates import certificates_from_pem, check_chain
from colonnade.pki.identity import PARTY, UNREADABLE, Identity, check_window

_SIGNATURE = 64  # r and s of P-256, 32 bytes each: of one size, unlike their DER
_LENGTHS = struct.Struct(">HH")
_ALGORITHM = ec.ECDSA(hashes.SHA256())


@dataclass(frozen=True, slots=True)
class CertificateAttestor:
    """Signs with a member's own certificate, and checks what parties of its federation signed."""

    credentials: Callable[[], Credentials]  # read at each use: certificates are renewed
    size: int  # of an attestation, in bytes

    def attest(self, statement: bytes) -> bytes:
        """Return the own chain and the signature of ``statement``, padded to one size."""
        own = self.credentials()
        key = load_pem_private_key(own.key_pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise BadIdentity("the key of this member's certificate is of another kind")
        chain = certificates_from_pem(own.chain_pem, "the own certificate")
        ders = [each.public_bytes(Encoding.DER) for each in chain]
        body = _LENGTHS.pack(*map(len, ders)) + b"".join(ders)
        if len(body) > self.size - _SIGNATURE:
            raise BadIdentity("this member's certificates are longer than an attestation")
        r, s = decode_dss_signature(key.sign(statement, _ALGORITHM))
        signature = r.to_bytes(_SIGNATURE // 2) + s.to_bytes(_SIGNATURE // 2)
        return body.ljust(self.size - _SIGNATURE, b"\0") + signature

    def check(self, attestation: bytes, statement: bytes, *, party: str) -> None:
        """Refuse an attestation unless ``party`` of the own federation signed ``statement``."""
        own = self.credentials()
        member = Identity(own.identity.federation, PARTY, party)
        check_attestation(attestation, statement, member, root_pem=own.root_pem, size=self.size)


def check_attestation(
    attestation: bytes, statement: bytes, member: Identity, *, root_pem: bytes, size: int
) -> None:
    """Refuse an attestation unless ``member`` signed ``statement``, by a certificate of the root.

    Needs nobody's key.
    """
    root = certificates_from_pem(root_pem, "the own root")[0]
    if len(attestation) != size:
        raise BadIdentity(f"an attestation has {size} bytes")
    chain, signature = _parts(attestation)
    identity = check_chain(chain, root)
    if identity != member:
        raise BadIdentity(f"{identity.uri} signed in the place of {member.uri}")
    for each in chain:
        check_window(each, identity.uri, now=datetime.now(UTC))
    key = chain[0].public_key()
    r, s = (int.from_bytes(each) for each in (signature[:32], signature[32:]))
    try:
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise BadIdentity(f"the key of {identity.uri} is of another kind")
        key.verify(encode_dss_signature(r, s), statement, _ALGORITHM)
    except InvalidSignature:
        raise BadIdentity(f"{identity.uri} signed something else") from None


def _parts(attestation: bytes) -> tuple[list[x509.Certificate], bytes]:
    """Return the chain and the signature of an attestation."""
    leaf, above = _LENGTHS.unpack_from(attestation)
    first = _LENGTHS.size
    try:
        chain = [
            x509.load_der_x509_certificate(attestation[first : first + leaf]),
            x509.load_der_x509_certificate(attestation[first + leaf : first + leaf + above]),
        ]
    except UNREADABLE:
        raise BadIdentity("an attestation holds no certificates") from None
    return chain, attestation[-_SIGNATURE:]
