"""A bundle installs where there is no network, and not at all if a byte of it was changed."""

import base64
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
OFFLINE = ("unshare", "--net", "--map-root-user")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("unshare") is None
        or subprocess.run([*OFFLINE, "true"], capture_output=True).returncode != 0,
        reason="no network namespace can be made",
    ),
]


def wheel(folder: Path, name: str, code: str, *, script: str = "") -> Path:
    """Write a small wheel, as a build tool would."""
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{script}\n" if script else "",
    }
    lines = []
    for each, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        lines.append(f"{each},sha256={digest.decode()},{len(text.encode())}")
    with zipfile.ZipFile(path, "w") as made:
        for each, text in {
            **files,
            f"{info}/RECORD": "\n".join([*lines, f"{info}/RECORD,,", ""]),
        }.items():
            made.writestr(each, text)
    return path


@pytest.fixture
def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that makes bundles, of a small project in place of this one."""
    spec = importlib.util.spec_from_file_location("make", ROOT / "deploy/bundle/make.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    project, house = tmp_path / "project", tmp_path / "house"
    needed = wheel(house, "needed", "ANSWER = 42\n")
    digest = hashlib.sha256(needed.read_bytes()).hexdigest()
    shutil.copytree(ROOT / "deploy/bundle", project / "deploy/bundle")
    shutil.copy(ROOT / "deploy/sbom.py", project / "deploy/sbom.py")
    shutil.copy(ROOT / "pyproject.toml", project / "pyproject.toml")
    for role in made.ROLES:
        lock = project / f"deploy/requirements-{role}.txt"
        lock.write_text(f"needed==1.0 --hash=sha256:{digest}\n")
    monkeypatch.setattr(made, "ROOT", project)

    def build(wheels: Path, _source: Sequence[str]) -> None:
        code = "def main():\n    import needed\n    print(needed.ANSWER)\n"
        wheel(wheels, "colonnade", code, script="colonnade = colonnade:main")

    monkeypatch.setattr(made, "_build", build)
    return made


def unpacked(maker: ModuleType, tmp_path: Path) -> Path:
    out = tmp_path / "bundle.tar"
    assert maker.main(["--out", str(out), "--wheelhouse", str(tmp_path / "house")]) == 0
    with tarfile.open(out) as tar:
        tar.extractall(tmp_path / "there", filter="data")
    return tmp_path / "there/colonnade-bundle"


def install(folder: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """Install in a network namespace that has not even a loopback device that is up."""
    command = [*OFFLINE, sys.executable, str(folder / "install.py"), "party", "--into", str(into)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return subprocess.run(command, capture_output=True, text=True, env=clean)


def test_it_installs_without_a_network_and_runs(maker: ModuleType, tmp_path: Path) -> None:
    folder, into = unpacked(maker, tmp_path), tmp_path / "installed"
    listed = {line.split("  ")[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert listed == there - {"SHA256SUMS"}
    bill = json.loads((folder / "sbom.cdx.json").read_text())
    assert [each["name"] for each in bill["components"]] == ["needed"]
    ran = install(folder, into)
    assert ran.returncode == 0, ran.stderr
    shown = subprocess.run([*OFFLINE, str(into / "bin/colonnade")], capture_output=True, text=True)
    assert shown.stdout == "42\n"
    again = install(folder, into)
    assert (again.returncode, len(again.stderr.splitlines())) == (3, 1)


def test_it_is_in_order_and_says_nothing_of_when_and_who(maker: ModuleType, tmp_path: Path) -> None:
    out = tmp_path / "bundle.tar"
    maker.make(out, images=False, wheelhouse=tmp_path / "house")
    with tarfile.open(out) as tar:
        entries = list(tar)
    assert [each.name for each in entries] == sorted(each.name for each in entries)
    assert {(each.mtime, each.uid, each.uname, each.mode) for each in entries} == {
        (0, 0, "", 0o644)
    }


@pytest.mark.parametrize("what", ["a wheel", "its checksum too", "one more", "one less"])
def test_a_changed_bundle_is_not_installed(maker: ModuleType, tmp_path: Path, what: str) -> None:
    folder, into = unpacked(maker, tmp_path), tmp_path / "installed"
    path = folder / "wheels/needed-1.0-py3-none-any.whl"
    sums = folder / "SHA256SUMS"
    if what == "one more":
        (folder / "wheels/more.whl").write_bytes(b"x")
    elif what == "one less":
        (folder / "INSTALL.md").unlink()
    else:
        before = hashlib.sha256(path.read_bytes()).hexdigest()
        wheel(folder / "wheels", "needed", "ANSWER = 43\n")
        if what == "its checksum too":  # then pip knows better, from the lock file
            after = hashlib.sha256(path.read_bytes()).hexdigest()
            sums.write_text(sums.read_text().replace(before, after))
    ran = install(folder, into)
    assert ran.returncode == 1, ran.stderr
    assert "Traceback" not in ran.stderr
    assert not into.exists()
