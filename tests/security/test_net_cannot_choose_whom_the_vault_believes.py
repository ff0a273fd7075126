"""Net has the certificate's key and may write where it is renewed; the root is the vault's own."""

import os
import threading
from pathlib import Path

import pytest
from support.pki import Pki, create_pki

from colonnade.core.errors import BadIdentity
from colonnade.methods.alignment.sizes import ATTESTATION_BYTES
from colonnade.party.vault.attestor import KEPT_ROOT, NetAttestor, keep_root
from colonnade.pki.attestation import CertificateAttestor
from colonnade.pki.authority import ROOT
from colonnade.pki.identity import Identity

STATEMENT = b"colonnade alignment place v1\0 of this run"


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return create_pki(tmp_path_factory.mktemp("pki"))


def folders(pki: Pki, tmp_path: Path) -> tuple[Path, Path]:
    """Return the folders of a ledger and of a certificate, as a person left them."""
    ledger, credentials = tmp_path / "ledger", tmp_path / "pki"
    ledger.mkdir()
    credentials.mkdir()
    (credentials / ROOT).write_bytes(pki.root_pem)
    return ledger, credentials


def test_a_root_that_net_put_in_the_place_of_the_installed_one_stops_the_party(
    pki: Pki, tmp_path: Path
) -> None:
    ledger, credentials = folders(pki, tmp_path)
    assert keep_root(ledger, credentials) == pki.root_pem
    assert keep_root(ledger, credentials) == pki.root_pem
    other = create_pki(tmp_path / "other")
    (credentials / ROOT).write_bytes(other.root_pem)
    with pytest.raises(BadIdentity):
        keep_root(ledger, credentials)
    (credentials / ROOT).unlink()  # a vault in a container of its own needs none
    assert keep_root(ledger, credentials) == pki.root_pem
    (ledger / KEPT_ROOT).unlink()  # a person takes up a new root
    (credentials / ROOT).write_bytes(other.root_pem)
    assert keep_root(ledger, credentials) == other.root_pem


def test_a_pipe_that_net_put_in_the_place_of_the_root_is_refused_and_not_waited_for(
    pki: Pki, tmp_path: Path
) -> None:
    ledger, credentials = folders(pki, tmp_path)
    keep_root(ledger, credentials)
    (credentials / ROOT).unlink()
    os.mkfifo(credentials / ROOT)
    refused = threading.Event()

    def keep() -> None:
        with pytest.raises(BadIdentity):
            keep_root(ledger, credentials)
        refused.set()

    threading.Thread(target=keep, daemon=True).start()
    assert refused.wait(60.0)


@pytest.mark.parametrize("signer", ["lab", "bank", "foreign", "nobody", "other words"])
def test_what_net_signed_is_believed_only_if_it_is_the_partys_word_on_this(
    signer: str, pki: Pki, tmp_path: Path
) -> None:
    own = pki.party("lab") if signer != "bank" else pki.party("bank")
    if signer == "foreign":
        own = create_pki(tmp_path / "elsewhere").party("lab")

    def ask(statement: bytes, size: int) -> bytes:
        if signer == "nobody":
            return bytes(size)
        said = b"something else" if signer == "other words" else statement
        return CertificateAttestor(lambda: own, size).attest(said)

    attestor = NetAttestor(ask, Identity("study", "party", "lab"), pki.root_pem)
    if signer == "lab":
        assert len(attestor.attest(STATEMENT)) == ATTESTATION_BYTES
    else:
        with pytest.raises(BadIdentity):
            attestor.attest(STATEMENT)
