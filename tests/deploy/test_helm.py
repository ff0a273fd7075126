"""The chart, rendered by Helm itself, gives the manifests, and no rights beyond them."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/colonnade"
HELM = shutil.which("helm", path=str(Path(sys.executable).parent)) or shutil.which("helm")
ROLES = ("party", "coordinator")
CIDR = "party.coordinatorCidr=192.0.2.10/32"

pytestmark = pytest.mark.skipif(HELM is None, reason="helm is not installed")


def helm(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    places = {f"HELM_{name}_HOME": str(home / name) for name in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run(
        [str(HELM), *arguments], capture_output=True, text=True, env={"PATH": "", **places}
    )


def rendered(home: Path, role: str, *settings: str) -> list[dict[str, Any]]:
    chosen = [word for each in (f"role={role}", CIDR, *settings) for word in ("--set", each)]
    ran = helm("template", "release", str(CHART), *chosen, home=home)
    assert ran.returncode == 0, ran.stderr
    return [each for each in yaml.safe_load_all(ran.stdout) if each]


def by_kind(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    kinds = {each["kind"]: each for each in found}
    assert len(kinds) == len(found)
    return kinds


@pytest.mark.parametrize("role", ROLES)
def test_at_its_defaults_the_chart_gives_the_manifests(tmp_path: Path, role: str) -> None:
    found = by_kind(rendered(tmp_path, role))
    claim = found["PersistentVolumeClaim"]["metadata"]
    assert claim.pop("annotations") == {"helm.sh/resource-policy": "keep"}  # a ledger stays
    text = (ROOT / "deploy/kubernetes" / f"{role}.yaml").read_text("utf-8")
    assert found == by_kind(list(yaml.safe_load_all(text)))


EVERYTHING = (
    "name=ours",
    "image.repository=registry.example.org/colonnade",
    f"image.digest=sha256:{'0' * 64}",
    "image.pullPolicy=IfNotPresent",
    "image.pullSecrets[0].name=registry",
    "storage.className=fast",
    "metrics.namespace=observability",
    "coordinator.service.type=ClusterIP",
    "coordinator.service.annotations.note=internal",
    "coordinator.databaseCidr=192.0.2.20/32",
    "nodeSelector.disk=ssd",
    "tolerations[0].key=private",
    "tolerations[0].operator=Exists",
    "podAnnotations.note=pod",
)
REPLICAS = (
    "coordinator.replicas=3",
    "coordinator.secret=hub",
    "coordinator.databaseCidr=192.0.2.20/32",
)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("settings", [(), EVERYTHING, ("metrics.enabled=false",), REPLICAS])
def test_what_is_rendered_passes_the_schema(
    tmp_path: Path, role: str, settings: tuple[str, ...]
) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    found = rendered(tmp_path, role, *settings)
    assert {"StatefulSet", "NetworkPolicy"} <= {each["kind"] for each in found}
    for each in found:
        validate.validate(each, "1.30", strict=True)
    misspelt = found[0] | {"spec": found[0]["spec"] | {"policyType": []}}
    with pytest.raises(validate.ValidationError):
        validate.validate(misspelt, "1.30", strict=True)


@pytest.mark.parametrize("role", ROLES)
def test_no_value_gives_a_pod_more_rights_or_a_second_copy(tmp_path: Path, role: str) -> None:
    stateful = by_kind(rendered(tmp_path, role, *EVERYTHING))["StatefulSet"]["spec"]
    assert stateful["replicas"] == 1
    pod = stateful["template"]["spec"]
    assert len(pod["containers"]) == (2 if role == "party" else 1)
    for container in pod["containers"]:
        assert container["image"] == f"registry.example.org/colonnade@sha256:{'0' * 64}"
        assert container["securityContext"] == {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
    assert pod["securityContext"]["runAsNonRoot"] is True
    for wrong in ("replicas=2", "securityContext.runAsUser=0", "role=both", "image.digest=latest"):
        ran = helm("template", "x", str(CHART), "--set", CIDR, "--set", wrong, home=tmp_path)
        assert ran.returncode != 0, wrong


def test_several_coordinators_have_their_folder_from_a_secret(tmp_path: Path) -> None:
    found = by_kind(rendered(tmp_path, "coordinator", *REPLICAS))
    assert "PersistentVolumeClaim" not in found
    assert found["NetworkPolicy"]["spec"]["egress"]
    stateful = found["StatefulSet"]["spec"]
    assert stateful["replicas"] == 3
    pod = stateful["template"]["spec"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert volumes["secret"]["secret"] == {"secretName": "hub", "defaultMode": 0o440}
    assert "persistentVolumeClaim" not in volumes["home"]
    (start,) = pod["initContainers"]
    assert start["securityContext"] == pod["containers"][0]["securityContext"]
    assert "secret" not in {each["name"] for each in pod["containers"][0]["volumeMounts"]}


def test_the_folder_is_made_of_the_secret_with_a_key_that_is_the_owners_alone(
    tmp_path: Path,
) -> None:
    pod = by_kind(rendered(tmp_path, "coordinator", *REPLICAS))["StatefulSet"]["spec"]["template"]
    *shell, script = pod["spec"]["initContainers"][0]["command"]
    secret, home = tmp_path / "secret", tmp_path / "home"
    secret.mkdir()
    home.mkdir()
    for name in ("coordinator.toml", "key.pem", "cert.pem", "root.pem"):
        (secret / ".data").mkdir(exist_ok=True)  # where Kubernetes keeps what the names point to
        (secret / ".data" / name).write_text(name)
        (secret / ".data" / name).chmod(0o440)
        (secret / name).symlink_to(Path(".data") / name)
    command = [*shell, script.replace("/etc/colonnade", str(secret))]
    for _ in range(2):  # a container that is started again finds what it made
        subprocess.run(command, cwd=home, check=True)
    assert (home / "coordinator.toml").read_text() == "coordinator.toml"
    assert sorted(each.name for each in (home / "pki").iterdir()) == [
        "cert.pem",
        "key.pem",
        "root.pem",
    ]
    assert (home / "pki/key.pem").stat().st_mode & 0o077 == 0
    assert not (home / "pki/key.pem").is_symlink()


@pytest.mark.parametrize("missing", REPLICAS[1:])
def test_several_coordinators_without_a_shared_state_are_refused(
    tmp_path: Path, missing: str
) -> None:
    given = ["role=coordinator", *(each for each in REPLICAS if each != missing)]
    chosen = [word for each in given for word in ("--set", each)]
    ran = helm("template", "x", str(CHART), *chosen, home=tmp_path)
    assert ran.returncode != 0
    assert "coordinator.replicas above 1 needs" in ran.stderr


def test_a_party_has_one_pod_whatever_is_said_of_coordinators(tmp_path: Path) -> None:
    found = by_kind(rendered(tmp_path, "party", *REPLICAS))
    assert found["StatefulSet"]["spec"]["replicas"] == 1
    assert "PersistentVolumeClaim" in found
    assert "initContainers" not in found["StatefulSet"]["spec"]["template"]["spec"]


def test_without_metrics_nothing_comes_in_to_a_party(tmp_path: Path) -> None:
    found = by_kind(rendered(tmp_path, "party", "metrics.enabled=false"))
    assert found["NetworkPolicy"]["spec"]["ingress"] == []
    containers = found["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert [each["args"][:2] for each in containers] == [["party", "vault"], ["party", "net"]]
    assert not any("ports" in each or "--metrics" in each["args"] for each in containers)


def test_a_party_without_a_coordinators_address_is_refused_in_one_sentence(tmp_path: Path) -> None:
    ran = helm("template", "x", str(CHART), home=tmp_path)
    assert ran.returncode != 0
    assert "party.coordinatorCidr is needed" in ran.stderr


def test_a_claim_that_exists_is_used_and_none_is_made(tmp_path: Path) -> None:
    found = by_kind(rendered(tmp_path, "party", "storage.existingClaim=kept"))
    assert "PersistentVolumeClaim" not in found
    volumes = found["StatefulSet"]["spec"]["template"]["spec"]["volumes"]
    assert volumes[0]["persistentVolumeClaim"] == {"claimName": "kept"}


@pytest.mark.parametrize("role", ROLES)
def test_the_notes_say_what_comes_next(tmp_path: Path, role: str) -> None:
    # Helm prints notes only where there is a cluster; as part of an object it renders them here.
    chart = shutil.copytree(CHART, tmp_path / "chart")
    notes = (chart / "templates/NOTES.txt").read_text()
    wrapped = '{{ define "notes" }}' + notes + "{{ end }}"
    (chart / "templates/_notes.tpl").write_text(wrapped)
    (chart / "templates/notes.yaml").write_text('text: {{ include "notes" . | quote }}\n')
    chosen = ("--set", f"role={role},{CIDR}", "--show-only", "templates/notes.yaml")
    ran = helm("template", "x", str(chart), *chosen, home=tmp_path)
    assert ran.returncode == 0, ran.stderr
    notes = yaml.safe_load(ran.stdout)["text"]
    assert f"statefulset/colonnade-{role}" in notes
    assert f"{role}.toml" in notes


def test_the_chart_passes_helms_own_check_and_has_the_projects_version(tmp_path: Path) -> None:
    ran = helm("lint", "--strict", str(CHART), "--set", CIDR, home=tmp_path)
    assert ran.returncode == 0, ran.stdout
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{chart["appVersion"]}"' in project
