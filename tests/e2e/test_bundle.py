"""The bundle of this very tree, with its images, installed without a network."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from support.containers import base_image

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_bundle_runs_where_there_is_no_network(tmp_path: Path, images: object) -> None:
    del images  # an engine is there, and the base image
    out = tmp_path / "bundle.tar"
    make = [sys.executable, "deploy/bundle/make.py", "--out", str(out), "--images"]
    engine = {"BASE_IMAGE": base_image(), "DOCKER_BUILDKIT": "0"}
    subprocess.run(make, cwd=ROOT, check=True, env={**os.environ, **engine})
    with tarfile.open(out) as tar:
        tar.extractall(tmp_path, filter="data")
    folder = tmp_path / "colonnade-bundle"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    offline = ["unshare", "--net", "--map-root-user"]
    assert shutil.which("unshare")
    for role, verb in (("party", ["party", "run"]), ("coordinator", ["coordinator"])):
        into = tmp_path / role
        install = [*offline, sys.executable, str(folder / "install.py"), role, "--into", str(into)]
        subprocess.run(install, check=True, env=clean)
        shown = [*offline, str(into / "bin/colonnade"), *verb, "--help"]
        assert subprocess.run(shown, capture_output=True, env=clean).returncode == 0
        name = f"colonnade-{role}"
        subprocess.run(["docker", "image", "rm", "--force", name], check=True)
        subprocess.run(["docker", "load", "--input", str(folder / f"{name}.tar")], check=True)
        run = ["docker", "run", "--rm", "--network", "none", name, *verb, "--help"]
        assert subprocess.run(run, capture_output=True).returncode == 0
