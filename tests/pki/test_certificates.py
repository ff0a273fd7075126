"""The authority and its approvals: what is issued, how it is limited, what is refused."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from support.pki import (
    BANK,
    CLIENT_USE,
    LAB,
    NOW,
    SERVER_USE,
    Pki,
    create_pki,
    request_pem,
)

from colonnade.core.errors import BadIdentity, BadInput
from colonnade.pki.authority import (
    approve_request,
    create_authority,
    fingerprint,
)
from colonnade.pki.files import write_whole


def test_an_issued_leaf_carries_the_checked_names_and_nothing_else_from_the_request(
    pki: Pki,
) -> None:
    wishes = (
        x509.BasicConstraints(ca=True, path_length=3),
        x509.ExtendedKeyUsage([SERVER_USE, CLIENT_USE]),
        x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00"),
    )
    csr = request_pem([x509.UniformResourceIdentifier(LAB)], *wishes)
    chain = x509.load_pem_x509_certificates(approve_request(pki.authority, csr, now=NOW))
    made, issuer = chain
    got = {type(each.value): each.value for each in made.extensions}
    assert got.pop(x509.BasicConstraints) == x509.BasicConstraints(ca=False, path_length=None)
    assert list(got.pop(x509.ExtendedKeyUsage)) == [CLIENT_USE]
    assert list(got.pop(x509.SubjectAlternativeName)) == [x509.UniformResourceIdentifier(LAB)]
    usage = got.pop(x509.KeyUsage)
    assert isinstance(usage, x509.KeyUsage)
    assert (usage.digital_signature, usage.key_cert_sign) == (True, False)
    assert set(got) == {x509.SubjectKeyIdentifier, x509.AuthorityKeyIdentifier}
    assert made.subject == x509.Name([])
    assert made.issuer == issuer.subject
    assert fingerprint(made) == fingerprint(csr)
    assert made.serial_number.bit_length() > 64
    assert made.not_valid_after_utc == NOW.replace(microsecond=0) + timedelta(days=30)
    assert made.not_valid_before_utc == NOW.replace(microsecond=0) - timedelta(minutes=5)


def test_the_authorities_are_limited_in_depth_use_and_names(pki: Pki) -> None:
    def value(name: str, kind: type[x509.ExtensionType]) -> Any:
        found = pki.signer(name).certificate.extensions.get_extension_for_class(kind)
        assert found.critical == (kind is not x509.ExtendedKeyUsage)
        return found.value

    for name, depth in (("root", 1), ("coordinators", 0), ("parties", 0)):
        assert value(name, x509.BasicConstraints).ca is True
        assert value(name, x509.BasicConstraints).path_length == depth
        assert value(name, x509.KeyUsage).key_cert_sign is True
    for name, use in (("coordinators", SERVER_USE), ("parties", CLIENT_USE)):
        assert list(value(name, x509.ExtendedKeyUsage)) == [use]
        permitted = value(name, x509.NameConstraints).permitted_subtrees
        assert permitted == [x509.UniformResourceIdentifier("study")]
    assert len(value("parties", x509.NameConstraints).excluded_subtrees) == 3


def _uri(text: str) -> x509.GeneralName:
    return x509.UniformResourceIdentifier(text)


HUB = _uri("spiffe://study/coordinator/hub")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([], "0 URIs"),
        ([x509.DNSName("lab")], "0 URIs"),
        ([_uri(LAB), _uri(BANK)], "2 URIs"),
        ([_uri("spiffe://study/party/LAB")], "lower-case"),
        ([_uri("spiffe://study/admin/lab")], "role"),
        ([_uri("spiffe://trial/party/lab")], "another federation"),
        ([_uri(LAB), x509.DNSName("localhost")], "no host"),
        ([_uri(LAB), x509.RFC822Name("lab@example.org")], "RFC822Name"),
        ([_uri("spiffe://study/operator/ann"), x509.DNSName("x")], "no host"),
        ([HUB], "hosts"),
        ([HUB, x509.DNSName("*.example.org")], "host name"),
        ([HUB, x509.DNSName("Hub.example.org")], "host name"),
        ([HUB, x509.DNSName("hub..org")], "host name"),
        ([HUB, x509.DNSName("hub\nx")], "host name"),
        ([HUB, x509.DNSName("10.0.0.300")], "host name"),
        ([HUB, x509.DNSName("")], "host name"),
        ([HUB, *(x509.DNSName(f"h{i}") for i in range(33))], "hosts"),
    ],
)
def test_a_request_outside_the_rules_is_refused_in_one_line(
    pki: Pki, names: list[x509.GeneralName], says: str
) -> None:
    with pytest.raises(BadIdentity, match=says) as refused:
        approve_request(pki.authority, request_pem(names), now=NOW)
    assert len(str(refused.value).splitlines()) == 1


def test_a_request_changed_on_the_way_is_refused(pki: Pki) -> None:
    pem_text = request_pem([_uri(LAB)])
    der = x509.load_pem_x509_csr(pem_text).public_bytes(serialization.Encoding.DER)
    assert der.count(b"party/lab") == 1
    changed = x509.load_der_x509_csr(der.replace(b"party/lab", b"party/bob"))
    with pytest.raises(BadIdentity, match="changed"):
        approve_request(pki.authority, changed.public_bytes(serialization.Encoding.PEM), now=NOW)


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP384R1()),
        rsa.generate_private_key(65537, 2048),
        ed25519.Ed25519PrivateKey.generate(),
    ],
)
def test_a_request_of_another_kind_of_key_is_refused(pki: Pki, key: Any) -> None:
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    builder = builder.add_extension(x509.SubjectAlternativeName([_uri(LAB)]), critical=False)
    digest = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    csr = builder.sign(key, digest).public_bytes(serialization.Encoding.PEM)
    with pytest.raises(BadIdentity, match="P-256"):
        approve_request(pki.authority, csr, now=NOW)


@pytest.mark.parametrize("days", [0, -1, 366, 10**9])
def test_a_life_outside_the_limits_is_refused(pki: Pki, days: int) -> None:
    with pytest.raises(BadInput, match="365"):
        approve_request(pki.authority, request_pem([_uri(LAB)]), now=NOW, days=days)


def test_no_certificate_outlives_its_authority(pki: Pki) -> None:
    end = pki.signer("parties").certificate.not_valid_after_utc
    csr = request_pem([_uri(LAB)])
    with pytest.raises(BadIdentity, match="ends"):
        approve_request(pki.authority, csr, now=end - timedelta(days=29))
    with pytest.raises(BadIdentity, match="authority expired"):
        approve_request(pki.authority, csr, now=end + timedelta(days=1))
    assert approve_request(pki.authority, csr, now=end - timedelta(days=31))


def test_an_expected_fingerprint_admits_its_own_key_only(pki: Pki) -> None:
    csr, other = request_pem([_uri(LAB)]), request_pem([_uri(LAB)])
    spelled = fingerprint(csr).replace(":", "").lower()
    assert approve_request(pki.authority, csr, now=NOW, expect_fingerprint=spelled)
    with pytest.raises(BadIdentity, match="fingerprint"):
        approve_request(pki.authority, other, now=NOW, expect_fingerprint=spelled)
    with pytest.raises(BadIdentity, match="SHA-256"):
        approve_request(pki.authority, csr, now=NOW, expect_fingerprint="")


def test_the_root_key_is_not_needed_to_approve(tmp_path: Path) -> None:
    pki = create_pki(tmp_path)
    (pki.authority / "root-key.pem").unlink()
    assert pki.party("lab").identity == pki.identity("party", "lab")


def test_a_mixed_up_authority_signs_nothing(tmp_path: Path, pki: Pki) -> None:
    mixed = create_pki(tmp_path)
    (mixed.authority / "root.pem").write_bytes(pki.root_pem)
    with pytest.raises(BadIdentity, match="root"):
        approve_request(mixed.authority, request_pem([_uri(LAB)]), now=NOW)


def test_an_authority_is_made_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes, **mode: int) -> None:
        if path.name == "parties-key.pem":
            raise OSError(28, "No space left on device")
        write_whole(path, content, **mode)

    monkeypatch.setattr("colonnade.pki.authority.write_whole", full)
    with pytest.raises(BadInput, match="space"):
        create_authority(tmp_path / "authority", "study", now=NOW)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_authority_is_never_replaced(pki: Pki) -> None:
    before = {path.name: path.read_bytes() for path in pki.authority.glob("*.pem")}
    with pytest.raises(BadInput, match="new folder"):
        create_authority(pki.authority, "study", now=NOW)
    assert {path.name: path.read_bytes() for path in pki.authority.glob("*.pem")} == before
