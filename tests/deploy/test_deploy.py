"""The files in deploy/ say what the code does: pins, configurations, manifests, dashboard."""

import datetime as dt
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from colonnade.data.schema import load_schema
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.party import config as party
from colonnade.party import policy_file as policy
from colonnade.party.net.shown import Shown
from colonnade.party.vault import metrics as party_metrics
from colonnade.party.vault.meter import Meter
from colonnade.party.vault.pacing import Pace
from colonnade.server import config as coordinator
from colonnade.server import metrics as coordinator_metrics
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.store.sql import Database

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ROLES = ("party", "coordinator")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(path: Path) -> dict[str, str]:
    """Return the versions in a file of requirements."""
    found = re.findall(r"^([\w.-]+)==([^\s;\\]+)", path.read_text(), re.MULTILINE)
    return {normal(name): version for name, version in found}


@pytest.mark.parametrize("role", [*ROLES, "build"])
def test_pins_are_those_the_tree_was_tested_with(role: str) -> None:
    path = DEPLOY / f"requirements-{role}.txt"
    tested, pinned = pins(ROOT / "constraints.txt"), pins(path)
    pinned.pop("colorama", None)  # for Windows only, so never tested and never installed
    assert pinned.items() <= tested.items(), "run make lock"
    blocks = path.read_text().replace("\\\n", "").splitlines()
    lines = [line for line in blocks if line and not line.startswith("#")]
    assert lines
    assert all("--hash=sha256:" in line for line in lines)
    assert "://" not in path.read_text()


def test_pins_cover_what_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for role in ROLES:
        wanted = [*project["dependencies"], *extras["postgres"]]
        wanted += extras["sealed"] if role == "party" else []  # parties alone multiply
        names = {normal(re.split(r"[\[>=<]", each)[0]) for each in wanted}
        path = DEPLOY / f"left-out-{role}.txt"
        text = path.read_text() if path.exists() else ""
        left_out = set(re.findall(r'^([\w.-]+) ; python_version < "0"$', text, re.MULTILINE))
        assert left_out < names
        pinned = pins(DEPLOY / f"requirements-{role}.txt").keys()
        assert names & pinned == names - left_out, "run make lock"


def test_configurations_are_the_templates_with_monitoring_on() -> None:
    for template, path in (
        (party.TEMPLATE, DEPLOY / "party" / "party.toml"),
        (coordinator.TEMPLATE, DEPLOY / "coordinator" / "coordinator.toml"),
    ):
        shown = template.replace("# metrics =", "metrics =").replace("# health =", "health =")
        shown = shown.replace("# socket = ", "socket = ")  # each half has a container of its own
        assert path.read_text() == shown
    assert (DEPLOY / "party" / "policy.toml").read_text() == policy.TEMPLATE
    assert party.load_config(DEPLOY / "party" / "party.toml").monitoring.any
    assert coordinator.load_config(DEPLOY / "coordinator" / "coordinator.toml").monitoring.any
    assert load_schema(DEPLOY / "party" / "schema.toml").label is not None


def exported(tmp_path: Path) -> set[str]:
    """Return the names that the two processes really export."""
    ledger = memory_ledger(LedgerConfig("lab", {"": 1000}))
    store, shown = Database("sqlite://"), Shown()
    shown.certificate_ends = dt.datetime.now(dt.UTC)
    readings = [
        *party_metrics.readings(
            ledger,
            Meter(tmp_path / "log"),
            Pace(0.0),
            attached=True,
            disk=tmp_path,
        ),
        *shown.read(),  # what net adds
        *coordinator_metrics.readings(Coordinator(store, "study")),
    ]
    store.close()
    names = {f"{each.name}_total" if each.counts else each.name for each in readings}
    return {"colonnade_build_info", *names}


def test_dashboard_and_page_name_the_metrics_that_exist(tmp_path: Path) -> None:
    names, pattern = exported(tmp_path), r"\bcolonnade_[a-z_]+"
    dashboard = json.loads((DEPLOY / "monitoring" / "grafana-dashboard.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert {name for text in shown for name in re.findall(pattern, text)} == names - {
        "colonnade_build_info"
    }
    assert "colonnade_build_info" in json.dumps(dashboard["templating"])
    page = (DEPLOY / "monitoring" / "README.md").read_text()
    assert set(re.findall(pattern, page)) == names
    boxes = [panel["gridPos"] for panel in dashboard["panels"]]
    cells = [
        (x, y)
        for box in boxes
        for x in range(box["x"], box["x"] + box["w"])
        for y in range(box["y"], box["y"] + box["h"])
    ]
    assert len(cells) == len(set(cells))  # no panel covers another
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(boxes)


def documents(path: Path) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("role", ROLES)
def test_manifests_pass_the_schema(role: str) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    found = documents(DEPLOY / "kubernetes" / f"{role}.yaml")
    assert {"StatefulSet", "NetworkPolicy"} <= {each["kind"] for each in found}
    for each in found:
        validate.validate(each, "1.30", strict=True)
    misspelt = found[0] | {"spec": found[0]["spec"] | {"accessMode": []}}
    with pytest.raises(validate.ValidationError):
        validate.validate(misspelt, "1.30", strict=True)


@pytest.mark.parametrize("role", ROLES)
def test_manifests_give_no_more_rights_than_the_compose_files(role: str) -> None:
    found = documents(DEPLOY / "kubernetes" / f"{role}.yaml")
    pod = next(each for each in found if each["kind"] == "StatefulSet")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    services = documents(DEPLOY / role / "docker-compose.yml")[0]["services"]
    assert [each["name"] for each in pod["containers"]] == [*running(services)]
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
        command = services[container["name"]]["command"]
        metrics = [command[-1]] if "--metrics" in command else []  # the last word of both
        assert command == container["args"][: len(command) - len(metrics)] + metrics
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def running(services: dict[str, Any]) -> dict[str, Any]:
    """Return the services that `up` starts, without those for commands."""
    return {name: each for name, each in services.items() if "profiles" not in each}


def test_the_vault_has_no_network_and_net_has_no_data() -> None:
    services = running(documents(DEPLOY / "party" / "docker-compose.yml")[0]["services"])
    vault, net = services["vault"], services["net"]
    assert vault["network_mode"] == "none"
    assert "ports" not in vault
    seen = {each.split(":")[1].removeprefix("/var/lib/colonnade/") for each in net["volumes"]}
    assert seen == {"party.toml", "pki", "run"}
    pods = documents(DEPLOY / "kubernetes" / "party.yaml")
    pod = next(each for each in pods if each["kind"] == "StatefulSet")["spec"]["template"]["spec"]
    (dials,) = [each for each in pod["containers"] if each["name"] == "net"]
    mounted = {each.get("subPath", each["name"]) for each in dials["volumeMounts"]}
    assert mounted == {"party.toml", "pki", "run", "temporary"}
    unit = (DEPLOY / "party" / "colonnade-party-vault.service").read_text()
    assert "\nPrivateNetwork=yes\n" in unit
    assert "\nRestrictAddressFamilies=AF_UNIX\n" in unit
    assert party.load_config(DEPLOY / "party" / "party.toml").socket is not None


def test_the_simulations_services_are_walled_off() -> None:
    (compose,) = documents(ROOT / "docker-compose.yml")
    homes = {}
    for party_name in ("hospital", "laboratory", "insurer"):
        service = compose["services"][party_name]
        assert service["networks"] == [party_name]
        assert "ports" not in service
        homes[party_name] = {each.split(":")[0] for each in service["volumes"]} - {
            "./deploy/simulation"
        }
        assert compose["networks"][party_name]["internal"] is True
    assert not set.intersection(*homes.values())
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_every_setting_is_in_the_example(tmp_path: Path) -> None:
    files = [*ROOT.glob("docker-compose*.yml")]
    used = {
        (name, default)
        for path in files
        for name, default in re.findall(r"\$\{(\w+)(?::[-?]([^}]*))?\}", path.read_text())
    }
    example = dict(
        re.findall(r"^# ?(\w+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)
    )
    assert {name for name, _ in used} | {"COMPOSE_PROJECT_NAME"} == example.keys()
    for name, default in used:
        if name != "POSTGRES_PASSWORD":
            assert example[name] == default, name


@pytest.mark.parametrize(
    ("role", "part"), [("party", "vault"), ("party", "net"), ("coordinator", "colonnade")]
)
def test_units_are_understood_by_systemd(role: str, part: str, tmp_path: Path) -> None:
    name = f"colonnade-{role}" + ("" if part == "colonnade" else f"-{part}")
    unit = (DEPLOY / role / f"{name}.service").read_text()
    (command,) = re.findall(r"^ExecStart=/opt/colonnade/bin/colonnade (.*)$", unit, re.MULTILINE)
    service = documents(DEPLOY / role / "docker-compose.yml")[0]["services"][part]
    metrics = [] if part == "vault" else ["--metrics", "0.0.0.0:9464"]
    assert [*command.split(), *metrics] == service["command"]
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    path = tmp_path / f"{name}.service"
    path.write_text(unit.replace("/opt/colonnade/bin/colonnade", "/bin/true"))
    ended = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, timeout=60
    )
    said = [line for line in ended.stderr.splitlines() if path.name in line]
    assert said == []


def test_pages_lead_to_a_running_party_in_under_ten_commands() -> None:
    for role in ROLES:
        page = (DEPLOY / role / "README.md").read_text()
        first = page.split("## From nothing", 1)[1].split("\n## ", 1)[0]
        lines = [
            line
            for block in re.findall(r"```sh\n(.*?)```", first, re.DOTALL)
            for line in block.splitlines()
        ]
        assert 3 <= len(lines) < 10, role
