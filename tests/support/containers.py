"""Containers for the end-to-end tests: an engine, images, compose files under names of their own.

Everything is off unless COLONNADE_E2E is set (`make e2e` and `.ci/run` set it): nobody who runs the
other tests is surprised by images.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SWITCH = "COLONNADE_E2E"
BASE = "colonnade-base"
IMAGES = {
    "COLONNADE_COORDINATOR_IMAGE": "colonnade-test-coordinator",
    "COLONNADE_PARTY_IMAGE": "colonnade-test-party",
    "COLONNADE_SIMULATION_IMAGE": "colonnade-test-simulation",
}
COORDINATOR, PARTY, SIMULATION = IMAGES.values()
_BUILD_S = 900.0
_START_S = 60.0
_STOP_S = 30.0

Ended = subprocess.CompletedProcess[str]


class NoEngine(Exception):
    """No containers can be run here; the message says why."""


def run(
    command: Sequence[str | Path],
    *,
    check: bool = True,
    timeout: float = 120.0,
    folder: Path = ROOT,
    settings: Mapping[str, str] | None = None,
    told: str | None = None,
) -> Ended:
    """Run a command; a failure shows what it printed."""
    ended = subprocess.run(
        [str(each) for each in command],
        cwd=folder,
        env={**os.environ, **(settings or {})},
        input=told,
        stdin=subprocess.DEVNULL if told is None else None,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if check and ended.returncode != 0:
        shown = f"{ended.stdout}\n{ended.stderr}"[-6000:]
        raise AssertionError(f"{' '.join(map(str, command))}: exit {ended.returncode}\n{shown}")
    return ended


def docker(*arguments: str | Path, **options: Any) -> str:
    """Run a command of the engine and return what it printed."""
    return run(["docker", *arguments], **options).stdout


@contextmanager
def engine() -> Iterator[None]:
    """Have an engine: the one that runs, or one that is started here and stopped at the end."""
    if not os.environ.get(SWITCH):
        raise NoEngine(f"containers are tested by `make e2e`, or with {SWITCH}=1")
    if shutil.which("docker") is None:
        raise NoEngine("docker is not installed")
    if _answers():
        yield
        return
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        raise NoEngine("no Docker engine answers, and none can be started by this user")
    log = Path("/tmp/colonnade-dockerd.log")
    with log.open("wb") as file:
        daemon = subprocess.Popen(["dockerd"], stdout=file, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + _START_S
        while not _answers():
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise NoEngine(f"dockerd did not start; see {log}")
            time.sleep(0.5)
        yield
    finally:
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def compose_command() -> list[str]:
    """Return Compose, of whichever generation is there."""
    if shutil.which("docker-compose") is not None:
        return ["docker-compose"]
    if run(["docker", "compose", "version"], check=False).returncode == 0:
        return ["docker", "compose"]
    raise NoEngine("Docker Compose is not installed")


def base_image() -> str:
    """Return a base for the images: the one named, one that is there, or a new one."""
    if named := os.environ.get("BASE_IMAGE"):
        return named
    for known in (BASE, "python:3.11-slim-bookworm"):
        if run(["docker", "image", "inspect", known], check=False).returncode == 0:
            return known
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        raise NoEngine("there is no base image; set BASE_IMAGE, or install debootstrap")
    run([ROOT / "deploy" / "base-image.sh", BASE], timeout=_BUILD_S)
    return BASE


def build() -> None:
    """Build all images under names of their own, with the file that users build them with."""
    settings = {**IMAGES, "BASE_IMAGE": base_image(), "DOCKER_BUILDKIT": "0"}
    command = [*compose_command(), "--file", "docker-compose.yml", "build"]
    run([*command, "setup", "hospital", "coordinator"], timeout=_BUILD_S, settings=settings)


def _answers() -> bool:
    return run(["docker", "info"], check=False).returncode == 0


@dataclass(frozen=True, slots=True)
class Project:
    """A compose file that runs under a name of its own."""

    name: str
    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    def compose(self, *arguments: str, **options: Any) -> Ended:
        """Run Compose in the project's folder."""
        settings = {**IMAGES, **self.settings, "COMPOSE_PROJECT_NAME": self.name}
        settings["COMPOSE_HTTP_TIMEOUT"] = "600"  # its 60 s do not suffice on a busy machine
        command = [*compose_command(), *arguments]
        return run(command, folder=self.folder, settings=settings, **options)

    def container(self, service: str) -> str:
        """Return the id of a service's container, running or not."""
        names = [f"label=com.docker.compose.{key}={value}" for key, value in self._labels(service)]
        found = docker("ps", "--all", "--quiet", *(f"--filter={name}" for name in names)).split()
        assert len(found) == 1, f"{service}: {found}"
        return found[0]

    def exec(self, service: str, *command: str, **options: Any) -> Ended:
        """Run a command in a running container."""
        told = ["--interactive"] if "told" in options else []
        return run(["docker", "exec", *told, self.container(service), *command], **options)

    def logs(self, service: str) -> str:
        """Return what a container has printed."""
        ended = run(["docker", "logs", self.container(service)])
        return ended.stdout + ended.stderr

    def inspect(self, service: str) -> dict[str, Any]:
        """Return what the engine knows of a container."""
        found: list[dict[str, Any]] = json.loads(docker("inspect", self.container(service)))
        return found[0]

    def wait(self, service: str, status: str = "healthy", wait_s: float = 120.0) -> None:
        """Wait until a container has a health status."""
        deadline = time.monotonic() + wait_s
        while (state := self.inspect(service)["State"])["Health"]["Status"] != status:
            assert state["Running"], f"{service} ended\n{self.logs(service)[-3000:]}"
            assert time.monotonic() < deadline, f"{service} is not {status}\n{self.logs(service)}"
            time.sleep(0.5)

    def remove(self) -> None:
        """Remove containers, networks and volumes."""
        self.compose("down", "--volumes", "--timeout", "10", check=False)

    def _labels(self, service: str) -> list[tuple[str, str]]:
        return [("project", self.name), ("service", service), ("oneoff", "False")]
