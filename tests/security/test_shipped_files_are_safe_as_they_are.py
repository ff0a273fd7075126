"""Files in deploy/ show metrics to nobody else, and come back after an expired certificate."""

import ipaddress
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from colonnade.core import errors
from colonnade.core.errors import EXIT_BUSY, EXIT_CERTIFICATE, EXIT_CODES, EXIT_UNREACHABLE

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ROLES = ("party", "coordinator")
UNITS = {
    "party": ("colonnade-party-net", "colonnade-party-vault"),
    "coordinator": ("colonnade-coordinator",),
}


def documents(path: Path) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all(path.read_text()))


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.rpartition(":")[0]).is_loopback


@pytest.mark.parametrize("role", ROLES)
def test_configurations_show_metrics_and_health_on_loopback(role: str) -> None:
    """They are what systemd runs with: the units add nothing to the command."""
    settings = tomllib.loads((DEPLOY / role / f"{role}.toml").read_text())
    assert is_loopback(settings["metrics"])
    assert is_loopback(settings["health"])
    for name in UNITS[role]:
        unit = (DEPLOY / role / f"{name}.service").read_text()
        (command,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
        assert "--metrics" not in command


def test_no_shipped_script_shows_metrics_to_others() -> None:
    for path in (DEPLOY / "simulation").iterdir():
        for address in re.findall(r'^(?:metrics|health) = "(.*)"', path.read_text(), re.MULTILINE):
            assert is_loopback(address), path.name
    assert any('metrics = "' in path.read_text() for path in (DEPLOY / "simulation").iterdir())


@pytest.mark.parametrize("role", ROLES)
def test_compose_publishes_metrics_on_loopback_only(role: str) -> None:
    (compose,) = documents(DEPLOY / role / "docker-compose.yml")
    (service,) = (each for each in compose["services"].values() if "ports" in each)
    (published,) = (each for each in service["ports"] if each.endswith(":9464"))
    assert published.startswith("127.0.0.1:")
    assert "network_mode" not in service  # in the machine's own network 0.0.0.0 would be everybody


def test_the_half_of_a_party_with_the_data_has_no_network() -> None:
    (compose,) = documents(DEPLOY / "party" / "docker-compose.yml")
    assert compose["services"]["vault"]["network_mode"] == "none"
    assert "PrivateNetwork=yes\n" in (DEPLOY / "party/colonnade-party-vault.service").read_text()


@pytest.mark.parametrize("role", ROLES)
def test_pods_show_metrics_on_their_own_address_to_one_namespace(role: str) -> None:
    found = documents(DEPLOY / "kubernetes" / f"{role}.yaml")
    pod = next(each for each in found if each["kind"] == "StatefulSet")["spec"]["template"]["spec"]
    assert "hostNetwork" not in pod
    (container,) = (each for each in pod["containers"] if "--metrics" in each["args"])
    assert container["args"][-2:] == ["--metrics", "$(POD_IP):9464"]
    assert container["env"] == [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    ]
    policy = next(each for each in found if each["kind"] == "NetworkPolicy")["spec"]
    (scraped,) = (
        rule for rule in policy["ingress"] if any(port["port"] == 9464 for port in rule["ports"])
    )
    assert scraped["from"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    ]
    services = [each for each in found if each["kind"] == "Service"]
    assert all(port["port"] != 9464 for each in services for port in each["spec"]["ports"])


@pytest.mark.parametrize(
    ("role", "name"), [(role, name) for role, names in UNITS.items() for name in names]
)
def test_what_heals_by_itself_never_keeps_a_unit_down(role: str, name: str) -> None:
    unit = (DEPLOY / role / f"{name}.service").read_text()
    assert "Restart=on-failure\n" in unit
    (line,) = re.findall(r"^RestartPreventExitStatus=(.*)$", unit, re.MULTILINE)
    prevented = {int(code) for code in line.split()}
    assert prevented < EXIT_CODES.keys()
    healing = {EXIT_BUSY, EXIT_UNREACHABLE, EXIT_CERTIFICATE}
    if role == "coordinator":  # its database may be on a machine that starts later
        healing.add(errors.StoreFailed.exit_code)
    assert prevented.isdisjoint(healing)
    # With the default limit of five starts in ten seconds a unit must wait two between them.
    (pause,) = re.findall(r"^RestartSec=(\d+)$", unit, re.MULTILINE)
    assert int(pause) > 2
    assert errors.CertificateExpired.exit_code == EXIT_CERTIFICATE
