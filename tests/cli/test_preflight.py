"""Preflight of a party and a coordinator that do not run: each problem is named with its fix."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from colonnade.cli.main import main
from colonnade.core.fixedpoint import Bounds
from colonnade.data.table import COARSE_NAME, Table
from colonnade.party.vault import pacing
from colonnade.pki.authority import CERTIFICATE
from colonnade.simulate.federation import Federation, create_federation
from colonnade.simulate.sites import Site, SiteColumn


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    values = np.linspace(-1.0, 1.0, 50)
    bounds = Bounds(-1.0, 1.0)
    site = Site("lab", [SiteColumn("x", bounds, values)], SiteColumn("y", bounds, values))
    return create_federation(tmp_path / "fed", [site], cap_units=10**12)


def checks(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, dict[str, object]]]:
    code = main(["preflight", *arguments, "--json"])
    found = json.loads(capsys.readouterr().out)
    return code, {check["check"]: check for check in found["checks"]}


def test_a_coordinator_that_can_start_is_ready(
    federation: Federation, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = checks(capsys, "--coordinator", str(federation.coordinator_config))
    assert code == 0
    assert all(check["ok"] for check in found.values())
    assert set(found) == {"config", "certificate", "port", "database", "disk"}


def test_a_party_without_a_coordinator_fails_that_check_alone(
    federation: Federation, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = checks(capsys, "--party", str(federation.party_config("lab")))
    assert code == 1
    assert [name for name, check in found.items() if not check["ok"]] == ["coordinator"]
    assert "cannot be reached" in str(found["coordinator"]["text"])


def test_a_policy_that_asks_more_people_than_the_ledger_names_fails(
    federation: Federation, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = federation.folder / "lab" / "policy.toml"
    text = policy.read_text().replace("[[allow]]", '[[allow]]\napprove = "ask"', 1)
    policy.write_text(text)
    code, found = checks(capsys, "--party", str(federation.party_config("lab")))
    assert code == 1
    assert not found["ledger"]["ok"]
    assert "the agreement of 1, and the ledger names 0" in str(found["ledger"]["text"])


def test_people_are_read_as_the_policy_has_them_written(
    federation: Federation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = federation.folder / "lab"
    source, policy, config = tmp_path / "people.csv", home / "policy.toml", home / "party.toml"
    source.write_text("person\nP-1\nP-2\np-2\n")
    config.write_text(f'{config.read_text()}\n[align]\nsource = "{source}"\nid = ["person"]\n')
    allowing = (
        f"{policy.read_text()}\n[[align]]\n"
        'coordinator = "spiffe://study/coordinator/hub"\npeers = ["*"]\nmax_people = 9\n'
    )

    def people() -> tuple[bool, str]:
        found = checks(capsys, "--party", str(config))[1]["people"]
        return bool(found["ok"]), str(found["text"])

    ok, text = people()
    assert ok
    assert "no [[align]]" in text
    policy.write_text(f'{allowing}ids = ["fold-case"]\n')
    ok, text = people()
    assert not ok
    assert "1 rows name a person who is listed in an earlier row" in text
    policy.write_text(f'{allowing}ids = ["fold-case"]\nrepeated = "first"\n')
    assert people() == (True, "2 people for alignments; 0 rows without an id, 1 that repeat one")
    policy.write_text(allowing)
    assert people() == (True, "3 people for alignments")


@pytest.mark.parametrize(("estimate", "advice"), [(0.0123, ""), (0.0876, "set it to 180")])
def test_a_grid_shorter_than_an_answer_takes_is_named(
    estimate: float,
    advice: str,
    federation: Federation,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("colonnade.cli.preflight.party.estimated_s", lambda _: estimate)
    config = federation.party_config("lab")
    config.write_text(f"{config.read_text()}\nanswer_grid_ms = 20\n")
    _, found = checks(capsys, "--party", str(config))
    text = str(found["data"]["text"])
    assert f"up to {1000 * estimate:.1f} ms" in text
    assert ("answer_grid_ms" in text) == bool(advice)
    assert advice in text


def test_an_estimate_counts_all_rows_of_a_table(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table.open(federation.folder / "lab" / "data" / COARSE_NAME)
    ticks = iter(float(n) for n in range(100))  # every look at the clock is a second later
    monkeypatch.setattr(pacing, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    assert pacing.estimated_s(table) == 1.0
    monkeypatch.setattr(pacing, "_SAMPLE", 25)  # half of its rows
    assert pacing.estimated_s(table) == 2.0


def _spoil_certificate(home: Path) -> None:
    (home / "pki" / CERTIFICATE).unlink()


def _spoil_policy(home: Path) -> None:
    (home / "policy.toml").write_text("[[allow]]\nmay = 1\n")


def _spoil_data(home: Path) -> None:
    table = next((home / "data").glob("coarse*"))
    content = bytearray(table.read_bytes())
    content[4096] ^= 1  # the first value, after a page of header
    table.write_bytes(content)


def _spoil_ledger(home: Path) -> None:
    (home / "ledger" / "ledger.key").unlink()


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (_spoil_certificate, "certificate"),
        (_spoil_policy, "policy"),
        (_spoil_data, "data"),
        (_spoil_ledger, "ledger"),
    ],
)
def test_each_problem_of_a_party_is_found(
    federation: Federation,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], None],
    check: str,
) -> None:
    spoil(federation.folder / "lab")
    code, found = checks(capsys, "--party", str(federation.party_config("lab")))
    assert code == 1
    assert not found[check]["ok"]
    assert "Traceback" not in str(found[check]["text"])


def test_an_unknown_key_in_the_configuration_is_refused(
    federation: Federation, capsys: pytest.CaptureFixture[str]
) -> None:
    path = federation.party_config("lab")
    path.write_text(path.read_text() + 'lisen = "x"\n')
    code, found = checks(capsys, "--party", str(path))
    assert code == 1
    assert "unknown key 'lisen'" in str(found["config"]["text"])


@pytest.mark.parametrize(
    "command", [("coordinator",), ("party", "run"), ("party", "policy")], ids=" ".join
)
def test_every_template_is_a_file_that_loads(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from colonnade.party import config as party_config
    from colonnade.party import policy_file as policy
    from colonnade.server import config as server_config

    assert main([*command, "--template"]) == 0
    path = tmp_path / "file.toml"
    path.write_text(capsys.readouterr().out)
    load: dict[tuple[str, ...], Callable[[Path], object]] = {
        ("coordinator",): server_config.load_config,
        ("party", "run"): party_config.load_config,
        ("party", "policy"): policy.load_policy,
    }
    assert load[command](path) is not None
