"""Enrolling with one command a side: what is made, what is left, and what is refused."""

import json
import tomllib
from pathlib import Path

import pytest

from colonnade.cli.main import main
from colonnade.core.errors import EXIT_BAD_INPUT, EXIT_OK, EXIT_REFUSED
from colonnade.ledger.create import open_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.config import load_config
from colonnade.party.policy_file import load_policy
from colonnade.privacy.membership import MEMBERSHIP, MembershipNoise

NEW = ("party", "new", "hospital", "--federation", "study", "--coordinator", "127.0.0.1:7443")
HUB = ("coordinator", "new", "study", "--host", "127.0.0.1", "--approve", "hospital/hospital.csr")
JOIN = ("party", "join", "study/approved/hospital.pem")


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{i};{i % 40},5;{'ja' if i % 3 else 'nein'}" for i in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["nr;age;well", *lines]) + "\n")
    return tmp_path


def test_a_folder_is_made_and_joined(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ("--data", "people.csv", "--id", "nr", "--label", "well")
    assert main((*NEW, *data)) == EXIT_OK
    assert "Two things are left to do" in capsys.readouterr().out
    home = rows / "hospital"
    assert (home / "pki" / "key.pem").stat().st_mode & 0o077 == 0
    config = load_config(home / "party.toml")
    assert config.align is not None
    assert (config.align.id, config.align.source) == (("nr",), rows / "people.csv")
    (grant,) = load_policy(home / "policy.toml").alignments
    assert (grant.coordinator.uri, grant.peers) == ("spiffe://study/coordinator/hub", ("*",))
    draft = (home / "schema.toml").read_text()
    assert draft.index("[[feature]]") < draft.index("[label]")
    assert 'yes = ["ja"]  # to be reviewed' in draft
    assert main(HUB) == EXIT_OK
    assert main((*JOIN, "--epsilon", "2", "--json")) == EXIT_OK
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["bounds_to_decide"], told["ledger_made"]) == (2, True)
    ledger = open_ledger(LedgerFiles(home / "ledger"))
    try:
        # Membership is paid besides: one run at epsilon 1 costs rho 1/2, more than the cap is.
        assert ledger.state.cap(MEMBERSHIP) == MembershipNoise.within(1.0, 1e-9).cost
        assert 0 < ledger.state.cap() < ledger.state.cap(MEMBERSHIP)
    finally:
        ledger.close()
    assert main(JOIN) == EXIT_OK  # renewing needs no cap, and leaves the ledger
    assert tomllib.loads((rows / "study" / "coordinator.toml").read_text())["listen"].endswith(
        "7443"
    )


def test_what_cannot_be_enrolled_is_said_in_one_line(
    rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(words: tuple[str, ...], code: int, text: str) -> None:
        capsys.readouterr()
        assert main(words) == code
        said = capsys.readouterr().err
        assert text in said
        assert said.count("\n") == 1

    data = ("--data", "people.csv")
    refused((*NEW, *data), EXIT_BAD_INPUT, "--id has to name")
    refused((*NEW, *data, "--id", "person"), EXIT_BAD_INPUT, "no column 'person'")
    refused((*NEW, "--id", "nr"), EXIT_BAD_INPUT, "--data")
    assert not (rows / "hospital").exists()  # nothing was made
    assert main((*NEW, *data, "--id", "nr")) == EXIT_OK
    refused((*NEW, *data, "--id", "nr"), EXIT_BAD_INPUT, "is not empty")
    refused((*HUB[:2], "other", *HUB[3:]), EXIT_REFUSED, "no party of other")
    assert not (rows / "other").exists()
    assert main(HUB) == EXIT_OK
    refused(JOIN, EXIT_BAD_INPUT, "--epsilon has to say the cap of the ledger")
    wrong = ("--epsilon", "1", "--fingerprint", ":".join(["00"] * 32))
    refused((*JOIN, *wrong), EXIT_REFUSED, "root's fingerprint")
    assert not (rows / "hospital" / "ledger").exists()
    assert not (rows / "hospital" / "pki" / "cert.pem").exists()
