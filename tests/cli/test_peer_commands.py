"""Keys of peers: pinned in the policy, and read out to be compared."""

import json
from pathlib import Path

import pytest
from support.federation import founded

from colonnade.cli.main import main
from colonnade.ledger.receipts import ledger_key_from_file, public_bytes
from colonnade.methods.sealed.claims import PROMISE
from colonnade.party.config import load_config
from colonnade.party.sealed.policy import fingerprint, key_from_text, key_to_text

Output = pytest.CaptureFixture[str]
LAB, OTHER, HOST = (key_to_text(bytes([first]) * 32) for first in (1, 2, 3))
SEALED = 'sealed = "peers-follow-the-protocol"\nsealed_columns = 9\nhostile_epsilon = 28\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a party's file whose policy grants sealed jobs and secure sums."""
    home = founded().folder / "hospital"
    policy = (home / "policy.toml").read_text()
    cohort = f'cohort = "peers-follow-the-protocol"\ncohort_peers = {{ host = "{HOST}" }}\n'
    (tmp_path / "policy.toml").write_text(f"{policy}{SEALED}{cohort}")
    path, text = tmp_path / "party.toml", (home / "party.toml").read_text()
    path.write_text(text.replace('"policy.toml"', f'"{tmp_path / "policy.toml"}"'))
    for name in home.iterdir():
        if name.name not in ("policy.toml", "party.toml"):
            (tmp_path / name.name).symlink_to(name)
    return path


def said(output: Output, *words: str, code: int = 0) -> str:
    assert main(["party", *words]) == code
    found = output.readouterr()
    return found.out if code == 0 else found.err


def test_a_key_that_was_pinned_is_read_out_with_all_others(config: Path, capsys: Output) -> None:
    told = said(capsys, "pin", "laboratory", LAB, "--config", str(config))
    assert fingerprint(key_from_text(LAB)) in told
    own = public_bytes(ledger_key_from_file(load_config(config).ledger.key))
    shown = said(capsys, "peers", "--config", str(config))
    for key in (own, key_from_text(LAB), key_from_text(HOST)):  # those of secure sums too
        assert f"{key_to_text(key)}\n  {fingerprint(key)}\n" in shown
    found = json.loads(said(capsys, "peers", "--config", str(config), "--json"))
    assert found["own"]["fingerprint"] == fingerprint(own)
    assert {name: each["key"] for name, each in found["peers"].items()} == {"laboratory": LAB}
    assert {each["party"]: each["key"] for each in found["pinned"]} == {
        "laboratory": LAB,
        "host": HOST,
    }


def test_both_keys_of_a_name_are_read_out(config: Path, capsys: Output) -> None:
    said(capsys, "pin", "laboratory", LAB, "--config", str(config))
    path = load_config(config).policy
    again = path.read_text()
    again = again[again.index("[[allow]]") :].replace(LAB, OTHER)
    path.write_text(path.read_text() + again)
    shown = said(capsys, "peers", "--config", str(config))
    assert f"laboratory: {LAB}\n" in shown
    assert f"laboratory: {OTHER}\n" in shown


def test_a_key_that_is_none_is_refused_with_one_line(config: Path, capsys: Output) -> None:
    before = load_config(config).policy.read_text()
    told = said(capsys, "pin", "laboratory", "ed25519:00", "--config", str(config), code=3)
    assert told.count("\n") == 1
    assert "64 hexadecimal digits" in told
    assert load_config(config).policy.read_text() == before


def test_a_policy_is_told_with_its_peers_its_promise_and_its_shield(
    config: Path, capsys: Output
) -> None:
    said(capsys, "pin", "laboratory", LAB, "--config", str(config))
    told = said(capsys, "policy", "--config", str(config))
    assert "with laboratory, up to 9 columns" in told
    assert "learn epsilon 28 (rho " in told
    assert PROMISE in told
