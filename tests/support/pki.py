"""A federation's certificates for tests: the real ones, and every kind that must be refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from colonnade.pki.authority import (
    Credentials,
    approve_request,
    create_authority,
    create_request,
    install_certificate,
    load_credentials,
)
from colonnade.pki.identity import Identity

Key = ec.EllipticCurvePrivateKey

SERVER_USE = ExtendedKeyUsageOID.SERVER_AUTH
CLIENT_USE = ExtendedKeyUsageOID.CLIENT_AUTH

NOW = datetime.now(UTC)
LAB = "spiffe://study/party/lab"
BANK = "spiffe://study/party/bank"


@dataclass(frozen=True)
class Signer:
    """A certificate and its key, used or misused to sign."""

    certificate: x509.Certificate
    key: Key
    above: tuple[x509.Certificate, ...] = ()  # the chain up to, without, the root


@dataclass(frozen=True)
class Pair:
    """What a client or server shows: a private key and a chain, both PEM."""

    key_pem: bytes
    chain_pem: bytes

    @property
    def leaf_pem(self) -> bytes:
        return pem(x509.load_pem_x509_certificate(self.chain_pem))


@dataclass(frozen=True)
class Pki:
    """One federation under a folder, with its authority's keys at hand for misuse."""

    folder: Path
    federation: str = "study"

    @property
    def authority(self) -> Path:
        return self.folder / "authority"

    @property
    def root_pem(self) -> bytes:
        return (self.authority / "root.pem").read_bytes()

    def identity(self, role: str, name: str) -> Identity:
        return Identity(self.federation, role, name)

    def member(
        self, role: str, name: str, *, hosts: Sequence[str] = (), now: datetime | None = None
    ) -> Credentials:
        """Enrol a member as the command line does; ``now`` is when it was approved."""
        moment = now or datetime.now(UTC)
        folder = self.folder / f"{role}-{name}"
        csr = create_request(folder, self.identity(role, name), hosts)
        install_certificate(folder, approve_request(self.authority, csr, now=moment), self.root_pem)
        return load_credentials(folder, now=moment)

    def coordinator(self, name: str = "hub") -> Credentials:
        return self.member("coordinator", name, hosts=("localhost", "127.0.0.1"))

    def party(self, name: str = "lab") -> Credentials:
        return self.member("party", name)

    def signer(self, name: str) -> Signer:
        """Return ``root``, ``coordinators`` or ``parties``."""
        certificate = x509.load_pem_x509_certificate((self.authority / f"{name}.pem").read_bytes())
        key = key_from_pem((self.authority / f"{name}-key.pem").read_bytes())
        return Signer(certificate, key, () if name == "root" else (certificate,))

    def lax(self) -> Signer:
        """Return an intermediate of the same root that no use and no name limits.

        TLS takes whatever it signs, so that a test sees the checks behind TLS at work.
        """
        root, key = self.signer("root"), new_key()
        limits = (x509.BasicConstraints(ca=True, path_length=None), SIGNS)
        made = sign(key, root, subject=common_name("lax"), extensions=limits)
        return Signer(made, key, (made,))


def create_pki(folder: Path, federation: str = "study") -> Pki:
    """Make a federation's authority; back-dated, so that members may have expired."""
    pki = Pki(folder, federation)
    create_authority(pki.authority, federation, now=datetime.now(UTC) - timedelta(days=400))
    return pki


def leaf(
    signer: Signer | None,
    *,
    uris: Sequence[str] = (),
    dns: Sequence[str] = (),
    cn: str | None = None,
    uses: Sequence[x509.ObjectIdentifier] = (CLIENT_USE,),
    days: tuple[float, float] = (-1, 30),
) -> Pair:
    """Sign a leaf without asking whether one should; ``None`` signs with the leaf's own key."""
    key = new_key()
    names = [
        *(x509.UniformResourceIdentifier(uri) for uri in uris),
        *(x509.DNSName(name) for name in dns),
    ]
    extensions: list[x509.ExtensionType] = [x509.BasicConstraints(ca=False, path_length=None)]
    if names:
        extensions.append(x509.SubjectAlternativeName(names))
    if uses:
        extensions.append(x509.ExtendedKeyUsage(list(uses)))
    subject = x509.Name([]) if cn is None else common_name(cn)
    made = sign(key, signer, subject=subject, extensions=extensions, days=days)
    above = () if signer is None else signer.above
    return Pair(key_to_pem(key), pem(made, *above))


def signer_from(credentials: Credentials) -> Signer:
    """Return a member's own leaf, to be misused as an authority."""
    chain = x509.load_pem_x509_certificates(credentials.chain_pem)
    return Signer(chain[0], key_from_pem(credentials.key_pem), tuple(chain))


def pair_of(credentials: Credentials) -> Pair:
    return Pair(credentials.key_pem, credentials.chain_pem)


def request_pem(
    names: Sequence[x509.GeneralName],
    *extensions: x509.ExtensionType,
    key: ec.EllipticCurvePrivateKey | None = None,
) -> bytes:
    """Return a request that carries whatever a test wants it to."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(common_name("anyone"))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    signed = builder.sign(key or new_key(), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def sign(
    key: Key,
    signer: Signer | None,
    *,
    subject: x509.Name,
    extensions: Sequence[x509.ExtensionType],
    days: tuple[float, float] = (-1, 30),
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if signer is None else signer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(key if signer is None else signer.key, hashes.SHA256())


def new_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def key_to_pem(key: Key | Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def key_from_pem(content: bytes) -> Key:
    key = serialization.load_pem_private_key(content, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


SIGNS = x509.KeyUsage(
    digital_signature=False,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)
