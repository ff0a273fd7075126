"""What is built and installed is what was pinned: same bytes, known licences, whole wheels."""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
LOCKS = [ROOT / "deploy" / f"requirements-{role}.txt" for role in ("party", "coordinator")]
SOURCES = ("proto", "common", "server", "party", "sim", "bench", "pyproject.toml", "README.md")


def run(*command: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, env=environment, capture_output=True, text=True
    )


def built(folder: Path, *, newer: bool) -> bytes:
    """Build the wheel from a copy of the sources, which has other times and another place."""
    folder.mkdir()
    for name in (*SOURCES, "LICENSE"):
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
            shutil.copytree(source, folder / name, ignore=ignored, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(source, folder / name)
    if newer:
        for path in folder.rglob("*"):
            os.utime(path, (2e9, 2e9))
    made = run("hatchling", "build", "--target", "wheel", "--directory", "dist", cwd=folder)
    assert made.returncode == 0, made.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel.read_bytes()


def test_two_builds_of_the_wheel_have_the_same_bytes(tmp_path: Path) -> None:
    first = built(tmp_path / "here", newer=False)
    again = built(tmp_path / "over there", newer=True)
    assert hashlib.sha256(first).digest() == hashlib.sha256(again).digest()
    assert len(first) > 100_000


def tiny_wheel(folder: Path, code: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path, body = folder / "grape-1.0-py3-none-any.whl", code.encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
    info = "grape-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("grape.py", body)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: grape\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        record = f"grape.py,sha256={digest},{len(body)}\n{info}/METADATA,,\n{info}/WHEEL,,\n"
        wheel.writestr(f"{info}/RECORD", record)
    return path


def test_a_tampered_wheel_is_refused_by_its_pinned_hash(tmp_path: Path) -> None:
    wheel = tiny_wheel(tmp_path / "wheels", "HARMLESS = True\n")
    pinned = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (tmp_path / "lock.txt").write_text(f"grape==1.0 --hash=sha256:{pinned}\n")
    # The words of deploy/install.sh, which a test below compares.
    install = [*("pip", "install", "--quiet", "--no-index", "--no-compile")]
    install += ["--find-links", "wheels", "--require-hashes", "--requirement", "lock.txt"]
    good = run(*install, "--target", "good", cwd=tmp_path)
    assert good.returncode == 0, good.stderr
    assert (tmp_path / "good" / "grape.py").exists()
    tiny_wheel(tmp_path / "wheels", "HARMLESS = False\n")
    bad = run(*install, "--target", "bad", cwd=tmp_path)
    assert bad.returncode != 0
    assert pinned in bad.stderr
    assert not (tmp_path / "bad" / "grape.py").exists()


def test_images_install_by_hash_alone_and_every_pin_has_one() -> None:
    recipe = (ROOT / "deploy" / "Dockerfile").read_text() + (ROOT / "deploy/install.sh").read_text()
    fetching = [line for line in recipe.splitlines() if "requirement" in line and "pip" in line]
    assert len(fetching) >= 2
    assert all("--require-hashes" in line for line in fetching if "--requirement req" in line)
    assert "--no-index" in recipe
    for lock in [*LOCKS, ROOT / "deploy" / "requirements-build.txt"]:
        blocks = re.split(r"^(?=[A-Za-z0-9])", lock.read_text(), flags=re.MULTILINE)
        pins = [block for block in blocks if re.match(r"[A-Za-z0-9][\w.\-\[\],]*==", block)]
        assert pins
        assert all("--hash=sha256:" in block for block in pins)


def test_all_licences_of_the_images_are_listed_and_allow_redistribution() -> None:
    checked = run("licences", "--check", cwd=ROOT / "deploy")
    assert checked.returncode == 0, "run 'make licences'" + checked.stderr
    page = (ROOT / "docs" / "reference" / "third-party.md").read_text()
    rows = re.findall(r"^\| ([a-z0-9-]+) \| (.+) \|$", page, flags=re.MULTILINE)
    pinned = {
        re.split(r"[\[=]", line)[0].lower().replace("_", "-")
        for lock in LOCKS
        for line in lock.read_text().splitlines()
        if "==" in line and not line.startswith((" ", "#"))
    }
    assert {name for name, _ in rows} - {"package"} == pinned
    # Linked against or installed beside, not changed: the weak copyleft of LGPL and MPL is met.
    strong = [name for name, licence in rows if re.search(r"\bA?GPL", licence)]
    assert strong == []


def test_the_security_policy_says_how_to_report_and_what_is_promised() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    for needed in ("private vulnerability report", "docs/concepts/threat-model.md", "Supported"):
        assert needed in text
    assert "http" not in text
    assert "@" not in text
