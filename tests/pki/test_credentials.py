"""A member's folder: what is installed and loaded, and what is said when something is wrong."""

import stat
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from support.pki import (
    BANK,
    LAB,
    NOW,
    SERVER_USE,
    Pki,
    Signer,
    common_name,
    create_pki,
    key_to_pem,
    leaf,
    new_key,
    pem,
    request_pem,
    sign,
    signer_from,
)

from colonnade.core.errors import BadIdentity, BadInput, ColonnadeError
from colonnade.pki.authority import (
    Credentials,
    approve_request,
    create_request,
    fingerprint,
    install_certificate,
    load_credentials,
)
from colonnade.pki.identity import Identity
from colonnade.pki.register import load_denied


def _uri(text: str) -> x509.GeneralName:
    return x509.UniformResourceIdentifier(text)


@pytest.fixture
def member(pki: Pki, tmp_path: Path) -> Path:
    """Return the folder of an installed party named ``lab``."""
    return enrolled(pki, tmp_path / "tls")


def enrolled(pki: Pki, folder: Path, name: str = "lab") -> Path:
    csr = create_request(folder, pki.identity("party", name))
    install_certificate(folder, approve_request(pki.authority, csr, now=NOW), pki.root_pem)
    return folder


def replace_key(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)
    path.chmod(0o600)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_keys_are_private_and_never_printed(pki: Pki, member: Path) -> None:
    keys = [member / "key.pem", *pki.authority.glob("*-key.pem")]
    assert [mode(key) for key in keys] == [0o400] * 4
    assert [mode(key.parent) for key in keys] == [0o700] * 4
    loaded = load_credentials(member)
    assert loaded.key_pem == keys[0].read_bytes()
    assert b"PRIVATE" in loaded.key_pem
    assert "PRIVATE" not in repr(loaded)
    public = [path for path in member.iterdir() if path.name != "key.pem"]
    assert {path.name for path in public} == {"request.csr", "cert.pem", "root.pem"}
    assert all(b"PRIVATE" not in path.read_bytes() for path in public)


def test_renewal_keeps_key_and_fingerprint_and_works_throughout(pki: Pki, member: Path) -> None:
    before = load_credentials(member)
    csr = create_request(member, before.identity)
    assert load_credentials(member) == before
    later = NOW + timedelta(days=20)
    chain = approve_request(
        pki.authority, csr, now=later, expect_fingerprint=fingerprint(before.chain_pem)
    )
    install_certificate(member, chain, pki.root_pem)
    after = load_credentials(member, now=later)
    assert after.key_pem == before.key_pem
    assert after.not_after == before.not_after + timedelta(days=20)


def test_a_folder_serves_one_identity(pki: Pki, member: Path) -> None:
    key = (member / "key.pem").read_bytes()
    with pytest.raises(BadIdentity, match="spiffe://study/party/lab"):
        create_request(member, pki.identity("party", "bank"))
    assert (member / "key.pem").read_bytes() == key
    assert load_credentials(member).identity.name == "lab"


def test_install_refuses_what_does_not_belong_together_and_writes_nothing(
    pki: Pki, tmp_path: Path
) -> None:
    folder = tmp_path / "tls"
    csr = create_request(folder, pki.identity("party", "lab"))
    good = approve_request(pki.authority, csr, now=NOW)
    other = create_pki(tmp_path / "other")
    certificates = x509.load_pem_x509_certificates(good)
    key = serialization.load_pem_private_key((folder / "key.pem").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    as_bank = request_pem([_uri(BANK)], key=key)
    swapped = pem(certificates[0], pki.signer("coordinators").certificate)
    by_lab = pki.party("lab")
    cases: list[tuple[bytes, bytes, type[ColonnadeError], str]] = [
        (good, other.root_pem, BadIdentity, "does not lead to its root"),
        (swapped, pki.root_pem, BadIdentity, "does not lead to its root"),
        (pem(certificates[0]), pki.root_pem, BadIdentity, "1 certificates"),
        (pem(*reversed(certificates)), pki.root_pem, BadIdentity, "0 URIs"),
        (by_lab.chain_pem, pki.root_pem, BadIdentity, "another key"),
        (
            approve_request(pki.authority, as_bank, now=NOW),
            pki.root_pem,
            BadIdentity,
            "is for spiffe://study/party/bank",
        ),
        (leaf(pki.signer("root"), uris=[LAB]).chain_pem, pki.root_pem, BadIdentity, "1 cert"),
        (good + (folder / "key.pem").read_bytes(), pki.root_pem, BadInput, "private key"),
        (b"nothing", pki.root_pem, BadInput, "no certificate"),
        (good, b"", BadInput, "no certificate"),
    ]
    for chain, root, kind, says in cases:
        with pytest.raises(kind, match=says) as refused:
            install_certificate(folder, chain, root)
        assert len(str(refused.value).splitlines()) == 1
        assert {path.name for path in folder.iterdir()} == {"key.pem", "request.csr"}
    assert install_certificate(folder, good, pki.root_pem) == Identity("study", "party", "lab")


def test_install_takes_a_leaf_for_the_use_of_its_role_only(pki: Pki, tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    create_request(folder, pki.identity("party", "lab"))
    wrong = leaf(pki.signer("parties"), uris=[LAB], uses=[SERVER_USE])
    replace_key(folder / "key.pem", wrong.key_pem)
    with pytest.raises(BadIdentity, match="use"):
        install_certificate(folder, wrong.chain_pem, pki.root_pem)
    under_leaf = leaf(signer_from(pki.party("lab")), uris=[LAB])
    chain = pem(*x509.load_pem_x509_certificates(under_leaf.chain_pem)[:2])
    with pytest.raises(BadIdentity, match="root"):
        install_certificate(folder, chain, pki.root_pem)


def test_install_refuses_an_intermediate_that_is_no_authority(pki: Pki, tmp_path: Path) -> None:
    folder, key = tmp_path / "tls", new_key()
    plain = sign(key, pki.signer("root"), subject=common_name("plain"), extensions=[])
    made = leaf(Signer(plain, key, (plain,)), uris=[LAB])
    create_request(folder, pki.identity("party", "lab"))
    replace_key(folder / "key.pem", made.key_pem)
    with pytest.raises(BadIdentity, match="signed"):
        install_certificate(folder, made.chain_pem, pki.root_pem)


def test_a_write_that_fails_leaves_nothing_behind(pki: Pki, tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    csr = create_request(folder, pki.identity("party", "lab"))
    (folder / "cert.pem").mkdir()
    with pytest.raises(BadInput, match="directory"):
        install_certificate(folder, approve_request(pki.authority, csr, now=NOW), pki.root_pem)
    names = {path.name for path in folder.iterdir()}
    assert names == {"key.pem", "request.csr", "root.pem", "cert.pem"}


def test_another_root_is_not_slipped_in_at_renewal(pki: Pki, member: Path, tmp_path: Path) -> None:
    other = create_pki(tmp_path / "other")
    csr = (member / "request.csr").read_bytes()
    chain = approve_request(other.authority, csr, now=NOW)
    with pytest.raises(BadIdentity, match="root"):
        install_certificate(member, chain, other.root_pem)
    assert load_credentials(member).root_pem == pki.root_pem


def spoil(folder: Path, case: str, pki: Pki) -> None:
    key, cert = folder / "key.pem", folder / "cert.pem"
    match case:
        case "no key" | "no certificate" | "no root":
            names = {"no key": "key.pem", "no certificate": "cert.pem", "no root": "root.pem"}
            (folder / names[case]).unlink()
        case "readable key":
            key.chmod(0o440)
        case "key for all":
            key.chmod(0o604)
        case "other key":
            replace_key(key, key_to_pem(new_key()))
        case "no key inside":
            replace_key(key, b"hello")
        case "key of another kind":
            other = ed25519.Ed25519PrivateKey.generate()
            replace_key(key, key_to_pem(other))
        case "damaged certificate":
            cert.write_bytes(cert.read_bytes().replace(b"M", b"N", 1))
        case "huge certificate":
            cert.write_bytes(b"x" * 70_000)
        case "certificate is a folder":
            cert.unlink()
            cert.mkdir()
        case "other root":
            (folder / "root.pem").write_bytes(create_pki(folder / "x").root_pem)


@pytest.mark.parametrize(
    ("case", "kind", "says"),
    [
        ("no key", BadInput, r"key.pem .*pki request"),
        ("no certificate", BadInput, r"cert.pem .*pki install"),
        ("no root", BadInput, r"root.pem .*pki install"),
        ("readable key", BadInput, "mode 0440"),
        ("key for all", BadInput, "mode 0604"),
        ("other key", BadIdentity, "another key"),
        ("no key inside", BadInput, "private"),
        ("key of another kind", BadInput, "P-256"),
        ("damaged certificate", BadInput, "certificate"),
        ("huge certificate", BadInput, "larger than"),
        ("certificate is a folder", BadInput, "directory"),
        ("other root", BadIdentity, "root"),
    ],
)
def test_every_fault_of_a_folder_is_told_in_one_line(
    pki: Pki, member: Path, case: str, kind: type[ColonnadeError], says: str
) -> None:
    spoil(member, case, pki)
    with pytest.raises(kind, match=says) as refused:
        load_credentials(member)
    assert len(str(refused.value).splitlines()) == 1


def test_a_certificate_out_of_its_time_says_when_and_how_to_renew(member: Path) -> None:
    loaded = load_credentials(member)
    with pytest.raises(BadIdentity) as expired:
        load_credentials(member, now=loaded.not_after + timedelta(seconds=1))
    assert f"expired on {loaded.not_after:%Y-%m-%d}" in str(expired.value)
    assert f"renew what is in {member}: colonnade pki renew" in str(expired.value)
    with pytest.raises(BadIdentity) as early:
        load_credentials(member, now=loaded.not_before - timedelta(seconds=1))
    assert f"not valid before {loaded.not_before:%Y-%m-%d}" in str(early.value)
    assert "clock" in str(early.value)


def test_a_denylist_is_read_whole_or_refused(tmp_path: Path, lab: Credentials) -> None:
    path, one = tmp_path / "denied", fingerprint(lab.chain_pem)
    path.write_text(f"# stolen laptop\n\n  {one.lower()}  # lab\n{'00' * 32}\n")
    assert load_denied(path) == {one, ":".join(["00"] * 32)}
    path.write_text(f"{one}\n{one[:-1]}\n")
    with pytest.raises(BadInput, match="line 2"):
        load_denied(path)
    with pytest.raises(BadInput, match="no such file"):
        load_denied(tmp_path / "missing")
    path.write_bytes(b"")
    assert load_denied(path) == frozenset()
