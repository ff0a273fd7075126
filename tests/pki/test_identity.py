"""Who a peer is: one URI in its certificate, checked for every call."""

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from hypothesis import given
from hypothesis import strategies as st
from support.pki import Pair, leaf, new_key, request_pem, sign

from colonnade.core.errors import EXIT_REFUSED, BadIdentity
from colonnade.pki.identity import (
    ROLES,
    Identity,
    check_certificate,
    fingerprint,
    fingerprint_from_text,
    identity_of,
    peer_certificate,
)

LAB = Identity("study", "party", "lab")
NOW = datetime.now(UTC)
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-."
PARTS = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", fullmatch=True)


@pytest.fixture(scope="module")
def lab() -> Pair:
    """Return a certificate that only its own key signed: chains are TLS's concern."""
    return leaf(None, uris=[LAB.uri], dns=["other-name"], cn="another-name")


def check(certificate: bytes | x509.Certificate, **changes: Any) -> Identity:
    usual: dict[str, Any] = {"now": NOW, "federation": "study", "role": "party"}
    return check_certificate(certificate, **({"denied": frozenset()} | usual | changes))


def der(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)


@given(PARTS, st.sampled_from(ROLES), PARTS)
def test_an_identity_survives_its_uri(federation: str, role: str, name: str) -> None:
    identity = Identity(federation, role, name)
    assert Identity.from_uri(identity.uri) == identity
    assert identity.uri == f"spiffe://{federation}/{role}/{name}"


@given(st.text(max_size=20) | st.text(ALPHABET, max_size=70))
def test_a_name_is_taken_only_inside_the_grammar(text: str) -> None:
    inside = (
        1 <= len(text) <= 63
        and set(text) <= set(ALPHABET)
        and text[0] not in "-."
        and text[-1] not in "-."
    )
    for parts in ((text, "party", "lab"), ("study", "party", text)):
        if inside:
            assert Identity.from_uri(Identity(*parts).uri) == Identity(*parts)
        else:
            with pytest.raises(BadIdentity) as refused:
                Identity(*parts)
            assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "spiffe://study/party/lab/",
        "spiffe://study/party/lab/extra",
        "spiffe://study/party",
        "spiffe://study/party/",
        "spiffe:///party/lab",
        "spiffe://study//lab",
        "Spiffe://study/party/lab",
        "SPIFFE://study/party/lab",
        "https://study/party/lab",
        "spiffe://Study/party/lab",
        "spiffe://study/Party/lab",
        "spiffe://study/party/Lab",
        "spiffe://study/admin/lab",
        "spiffe://study/party/lab\n",
        "spiffe://study/party/lab\nbank",
        " spiffe://study/party/lab",
        "spiffe://study/party/lab ",
        "spiffe://study/party/l%61b",
        "spiffe://study/party/..",
        "spiffe://study/party/-rf",
        "spiffe://study/party/lab?x=1",
        "spiffe://study/party/lab#x",
        "spiffe://study:443/party/lab",
        "spiffe://me@study/party/lab",
        "spiffe://study/party/lab\x00",
        "spiffe://study/party/läb",
        "spiffe://study/party/l\u0430b",  # a Cyrillic letter
        "spiffe://study/party/" + "a" * 64,
        "spiffe://" + "a" * 64 + "/party/lab",
        "x" * 100_000,
    ],
)
def test_any_other_spelling_is_refused_in_one_short_line(uri: str) -> None:
    with pytest.raises(BadIdentity) as refused:
        Identity.from_uri(uri)
    message = str(refused.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 250
    assert message.isascii()


def test_the_error_has_a_stable_code_and_the_exit_code_of_a_refusal() -> None:
    assert BadIdentity.code == "bad_identity"
    assert BadIdentity.exit_code == EXIT_REFUSED == 4


def test_pem_der_and_object_name_the_same_holder(lab: Pair) -> None:
    certificate = x509.load_pem_x509_certificate(lab.chain_pem)
    assert identity_of(lab.chain_pem) == identity_of(der(lab.chain_pem)) == LAB
    assert identity_of(certificate) == LAB


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (leaf(None), "0 URIs"),
        (leaf(None, cn=LAB.uri), "0 URIs"),
        (leaf(None, cn="lab"), "0 URIs"),
        (leaf(None, dns=["lab", "study.party.lab"]), "0 URIs"),
        (leaf(None, dns=[LAB.uri]), "0 URIs"),
        (leaf(None, uris=[LAB.uri, "spiffe://study/party/bank"]), "2 URIs"),
        (leaf(None, uris=[LAB.uri, LAB.uri]), "2 URIs"),
        (leaf(None, uris=[LAB.uri, "https://lab.example"]), "2 URIs"),
        (leaf(None, uris=["https://lab.example"]), "form"),
        (leaf(None, uris=["spiffe://study/party/lab\n"]), "form|must"),
    ],
)
def test_exactly_one_uri_says_who_it_is(broken: Pair, says: str) -> None:
    with pytest.raises(BadIdentity, match=says) as refused:
        identity_of(broken.chain_pem)
    assert len(str(refused.value).splitlines()) == 1
    with pytest.raises(BadIdentity, match=says):
        check(broken.chain_pem)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x30\x00", b"-----BEGIN CERTIFICATE-----\n", b"hello", b"\xff" * 500],
)
def test_bytes_that_are_no_certificate_are_refused(content: bytes) -> None:
    with pytest.raises(BadIdentity, match="certificate"):
        check(content)


@pytest.mark.filterwarnings("ignore:Parsed a serial number")  # the library's own notice
def test_a_changed_certificate_is_read_or_refused_but_never_crashes(lab: Pair) -> None:
    whole = der(lab.chain_pem)
    outcomes: set[str] = set()
    for at in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            changed = bytearray(whole)
            changed[at] ^= flip
            outcomes.add(_outcome(bytes(changed)))
    assert {"", "this is not a certificate that can be read"} <= outcomes
    assert all(len(outcome.splitlines()) <= 1 for outcome in outcomes)


def _outcome(certificate: bytes) -> str:
    try:
        check(certificate)
    except BadIdentity as refused:
        return str(refused)
    return ""


def test_unreadable_alternative_names_are_refused() -> None:
    broken = x509.UnrecognizedExtension(x509.ObjectIdentifier("2.5.29.17"), b"\x30\x05\x86")
    made = sign(new_key(), None, subject=x509.Name([]), extensions=[broken])
    with pytest.raises(BadIdentity, match="read"):
        check(made)


def test_a_good_certificate_is_admitted_at_both_ends_of_its_life(lab: Pair) -> None:
    certificate = x509.load_pem_x509_certificate(lab.chain_pem)
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    assert check(lab.chain_pem, now=begin) == check(lab.chain_pem, now=end) == LAB
    with pytest.raises(BadIdentity, match=f"expired on {end:%Y-%m-%d}"):
        check(lab.chain_pem, now=end + timedelta(seconds=1))
    with pytest.raises(BadIdentity, match=f"is not valid before {begin:%Y-%m-%d}"):
        check(lab.chain_pem, now=begin - timedelta(seconds=1))


def test_a_time_without_a_zone_is_a_mistake_of_the_caller(lab: Pair) -> None:
    with pytest.raises(ValueError, match="time zone"):
        check(lab.chain_pem, now=NOW.replace(tzinfo=None))


def test_another_federation_or_role_is_refused(lab: Pair) -> None:
    with pytest.raises(BadIdentity, match="federation trial"):
        check(lab.chain_pem, federation="trial")
    for role in ("operator", "coordinator"):
        with pytest.raises(BadIdentity, match=f"role {role}"):
            check(lab.chain_pem, role=role)


def test_a_denied_key_or_certificate_is_refused(lab: Pair) -> None:
    certificate = x509.load_pem_x509_certificate(lab.chain_pem)
    of_certificate = certificate.fingerprint(hashes.SHA256()).hex(":").upper()
    assert of_certificate != fingerprint(lab.chain_pem)
    for denied in (fingerprint(lab.chain_pem), of_certificate):
        with pytest.raises(BadIdentity, match="denied"):
            check(lab.chain_pem, denied=frozenset({denied}))
    others = frozenset({fingerprint(leaf(None, uris=[LAB.uri]).chain_pem)})
    assert check(lab.chain_pem, denied=others) == LAB


def test_a_request_is_not_a_certificate() -> None:
    pem = request_pem([x509.UniformResourceIdentifier(LAB.uri)])
    assert identity_of(pem) == LAB
    with pytest.raises(BadIdentity, match="certificate"):
        check(pem)


def test_the_fingerprint_is_the_sha256_of_the_public_key() -> None:
    key = new_key()
    spki = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    expected = hashlib.sha256(spki).hexdigest().upper()
    request = request_pem([x509.UniformResourceIdentifier(LAB.uri)], key=key)
    certificate = sign(key, None, subject=x509.Name([]), extensions=[])
    assert fingerprint(request) == fingerprint(certificate)
    assert fingerprint(request).replace(":", "") == expected
    assert re.fullmatch("([0-9A-F]{2}:){31}[0-9A-F]{2}", fingerprint(request))


def test_a_fingerprint_is_read_in_either_case_with_or_without_colons(lab: Pair) -> None:
    text = fingerprint(lab.chain_pem)
    for spelling in (text, text.lower(), text.replace(":", ""), f"  {text}\n"):
        assert fingerprint_from_text(spelling) == text
    for wrong in ("", text[:-1], text + "0", text.replace("A", "G") + "G", "SHA256:" + text):
        with pytest.raises(BadIdentity, match="fingerprint"):
            fingerprint_from_text(wrong)


def test_a_peer_without_exactly_one_certificate_is_refused(lab: Pair) -> None:
    assert peer_certificate({"x509_pem_cert": [lab.chain_pem]}) == lab.chain_pem
    for shown in ([], [b"a", b"b"]):
        with pytest.raises(BadIdentity, match="certificate"):
            peer_certificate({"x509_pem_cert": shown})
    with pytest.raises(BadIdentity, match="certificate"):
        peer_certificate({"transport_security_type": [b"ssl"]})
