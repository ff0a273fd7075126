"""The pages of deploy/coordinator and deploy/party, followed step by step.

Each organization has a folder, a project and a network of its own; what passes between them is what
people would carry: requests, certificates, fingerprints. The commands are the pages' own.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from support.containers import IMAGES, ROOT, Ended, Project, compose_command, run

from colonnade.pki.certificates import certificates_from_pem
from colonnade.pki.identity import fingerprint, parsed
from colonnade.simulate.federation import free_port

pytestmark = [pytest.mark.usefixtures("images"), pytest.mark.timeout(1200)]

UID = 10001  # an ordinary user; the tests may run as root
ROWS = 3000
PARTIES = ("hospital", "laboratory")


def blocks(page: str, title: str) -> list[str]:
    """Return the commands of a page's section, block by block."""
    text = (ROOT / "deploy" / page / "README.md").read_text()
    section = text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


@dataclass(frozen=True, slots=True)
class Organization:
    """Someone with a page, a folder and a shell."""

    home: Path
    name: str
    port: int  # of the coordinator, on this machine
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.home / self.name

    def follow(self, block: str, *, check: bool = True, **settings: str) -> Ended:
        """Run a block of the page as this organization."""
        script = block.replace("docker compose", " ".join(compose_command()))
        script = script.replace("run --rm", "run --rm -T")  # nobody sits at a terminal
        if self.name in PARTIES:
            script = script.replace("hospital", self.name)
        script = script.replace(":7443", f":{self.port}")
        there = self.folder.exists()
        ended = run(
            ["sh", "-ec", script],
            folder=self.folder if there else ROOT,
            settings={**IMAGES, **self.settings, **settings, "HOME": str(self.home)},
            timeout=180,
            check=check,
        )
        if not there:
            self._move_in()
        self.own()
        return ended

    def edit(self, name: str, changes: Mapping[str, str]) -> None:
        """Change a file, as the page asks."""
        text = (self.folder / name).read_text()
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        (self.folder / name).write_text(text)

    def own(self) -> None:
        """Let everything belong to the user whose number is in .env."""
        if os.geteuid() == 0:
            run(["chown", "-R", f"{UID}:{UID}", self.folder])

    def _move_in(self) -> None:
        # Tests share one machine: ports differ, the coordinator's name leads to this machine, and
        # root is not an ordinary user.
        user = UID if os.geteuid() == 0 else os.geteuid()
        ports = f"COLONNADE_LISTEN={self.port}\nCOLONNADE_METRICS_PORT={free_port()}\n"
        ids = f"COLONNADE_UID={user}\nCOLONNADE_GID={user if user == UID else os.getegid()}\n"
        (self.folder / ".env").write_text(ids + ports + f"COMPOSE_PROJECT_NAME={self.project}\n")
        hosts = {"extra_hosts": ["hub.example.org:host-gateway"]}
        dialling = ("colonnade", "net") if self.name in PARTIES else ("colonnade",)
        text = json.dumps({"services": dict.fromkeys(dialling, hosts)})
        (self.folder / "docker-compose.override.yml").write_text(text)

    @property
    def project(self) -> str:
        return f"colonnade-test-{self.name}"

    def remove(self) -> None:
        if self.folder.exists():
            Project(self.project, self.folder).remove()


@pytest.fixture(scope="module")
def federation(
    images: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Organization]]:
    """Everyone after the last step of their pages."""
    home, port = tmp_path_factory.mktemp("organizations"), free_port()
    home.chmod(0o755)
    made = {name: Organization(home / name, name, port) for name in ("hub", *PARTIES)}
    for each in made.values():
        each.home.mkdir()
    try:
        _found_hub(made["hub"])
        for name in PARTIES:
            _join(made[name], made["hub"])
        yield made
    finally:
        for each in made.values():
            each.remove()


def _found_hub(hub: Organization) -> None:
    for block in blocks("coordinator", "From nothing to a running coordinator"):
        hub.follow(block)


def _join(party: Organization, hub: Organization) -> None:
    folder, request, install, ingest, found, check, start = blocks(
        "party", "From nothing to a running party"
    )
    party.follow(folder)
    party.follow(request)
    pem = (party.folder / "pki" / "request.csr").read_bytes()
    (hub.folder / f"{party.name}.csr").write_bytes(pem)  # sent
    (approve,) = blocks("coordinator", "Approve a party")
    hub.follow(approve.replace("hospital", party.name), FINGERPRINT=fingerprint(parsed(pem)))
    answer = hub.folder / f"{party.name}.pem"
    (party.folder / answer.name).write_bytes(answer.read_bytes())  # sent back
    root = certificates_from_pem((hub.folder / "authority" / "root.pem").read_bytes(), answer)[0]
    party.own()
    party.follow(install, ROOT_FINGERPRINT=fingerprint(root))
    _write_people(party.folder / "people.csv", PARTIES.index(party.name))
    party.follow(ingest)
    party.follow(found)
    run(["cp", "-a", party.folder / "ledger", party.folder / "backup"])  # one that will be old
    party.edit("party.toml", {":7443": f":{party.port}"})
    said = party.follow(check).stdout
    assert "spiffe://study/coordinator/hub may ask for" in said
    assert said.rstrip().endswith("ready")
    _start(party, start)


def _start(party: Organization, block: str) -> None:
    up, health = block.splitlines()
    party.follow(up)
    deadline = time.monotonic() + 60
    while party.follow(health, check=False).stdout != "serving\n":
        assert time.monotonic() < deadline, Project(party.project, party.folder).logs("net")
        time.sleep(0.5)


def _write_people(path: Path, place: int) -> None:
    """Write a table whose label, the same everywhere, follows from a column of each party."""
    draw = np.random.default_rng(3)
    ages, pressures = draw.normal(50, 12, (2, ROWS)), draw.normal(130, 20, (2, ROWS))
    cost = 5000 + 80 * (ages[0] - 50) - 60 * (pressures[1] - 130)
    columns = np.column_stack([ages[place], pressures[place], cost])
    head = "age,Systolic (mmHg),annual_cost"
    np.savetxt(path, columns, "%.4g", ",", header=head, comments="")


def test_the_pages_end_in_a_report(federation: Mapping[str, Organization]) -> None:
    hub = federation["hub"]
    (block,) = blocks("coordinator", "Submit a job")
    hub.follow(block)
    report = json.loads((hub.folder / "run" / "report.json").read_text())
    assert report["state"] == "finished"
    assert report["private"] is True
    assert {each["party"] for each in report["privacy"]["parties"]} == set(PARTIES)
    assert report["uplink"]["payload_bytes"] == report["uplink"]["predicted_bytes"] > 0
    for each in report["privacy"]["parties"]:
        assert 0 < each["ledger_spent"]["units"] <= each["cap"]["units"]
    assert (hub.folder / "run" / "report.html").exists()


def test_nothing_of_one_organization_is_with_another(
    federation: Mapping[str, Organization],
) -> None:
    for each in federation.values():
        keys = [path for path in each.folder.rglob("*key*") if path.is_file()]
        assert keys
        assert all(oct(path.stat().st_mode & 0o77) == "0o0" for path in keys)
    texts = {name: _secrets(each.folder) for name, each in federation.items()}
    names: Sequence[str] = list(texts)
    for one in names:
        for other in names:
            assert one == other or not texts[one] & texts[other]


def _secrets(folder: Path) -> set[bytes]:
    found = {path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {each for each in found if b"PRIVATE KEY" in each or each.startswith(b"age,")}


def test_a_ledger_restored_from_a_backup_stops(federation: Mapping[str, Organization]) -> None:
    """What the page says must never be done, done: the party stops, and says why."""
    party = federation["laboratory"]
    project = Project(party.project, party.folder)
    project.compose("stop")
    (party.folder / "ledger").rename(party.folder / "newer")
    (party.folder / "backup").rename(party.folder / "ledger")
    command = ("run", "--rm", "-T", "colonnade", "party", "run", "--config", "party.toml")
    ended = project.compose(*command, check=False)
    assert ended.returncode == 5
    assert "it was restored or run twice" in ended.stderr
    # It stays so, and the true ledger still works.
    assert project.compose(*command, check=False).returncode == 5
    (party.folder / "ledger").rename(party.folder / "backup")
    (party.folder / "newer").rename(party.folder / "ledger")
    _start(party, blocks("party", "From nothing to a running party")[-1])
