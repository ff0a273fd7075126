"""The bill of materials lists what is shipped, truly, and is the same for the same input."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def wheel(folder: Path, name: str, version: str, *lines: str) -> Path:
    """Write a wheel that has metadata and nothing else."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    said = "\n".join(("Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *lines, ""))
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"{name}-{version}.dist-info/METADATA", said)
    return path


def bill(out: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "deploy/sbom.py"), *arguments, "--out", str(out)]
    ran = subprocess.run(command, capture_output=True, text=True, env={"SOURCE_DATE_EPOCH": "1"})
    assert (ran.returncode, ran.stderr) == (0, "")
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def test_it_lists_every_wheel_with_licence_digest_and_needs(tmp_path: Path) -> None:
    first = wheel(tmp_path, "colonnade", "1.2", "Requires-Dist: Grape_Jam>=1")
    second = wheel(
        tmp_path,
        "grape_jam",
        "1.0",
        "License-Expression: MIT",
        "Requires-Dist: plum; extra == 'more'",
        "Requires-Dist: pear",
    )
    third = wheel(tmp_path, "pear", "2", "Classifier: License :: OSI Approved :: BSD License")
    found = bill(tmp_path / "sbom.json", "--wheels", str(tmp_path))
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    listed = {each["name"]: each for each in found["components"]}
    assert list(listed) == ["grape-jam", "pear"]
    assert listed["grape-jam"]["purl"] == "pkg:pypi/grape-jam@1.0"
    assert listed["grape-jam"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert listed["pear"]["licenses"] == [{"license": {"name": "BSD License"}}]
    root = found["metadata"]["component"]
    for path, said in zip((first, second, third), (root, *listed.values()), strict=True):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert said["hashes"] == [{"alg": "SHA-256", "content": digest}]
    needs = {each["ref"]: each.get("dependsOn", []) for each in found["dependencies"]}
    assert needs["colonnade@1.2"] == ["grape-jam@1.0"]
    assert needs["grape-jam@1.0"] == ["pear@2"]  # what an extra would add is not shipped


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    lock = ROOT / "deploy/requirements-coordinator.txt"
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    found = bill(one, "--lock", str(lock))
    bill(two, "--lock", str(lock))
    assert one.read_bytes() == two.read_bytes()
    pinned = {line.split("==")[0] for line in lock.read_text().splitlines() if "==" in line}
    assert {each["name"] for each in found["components"]} == {name.split("[")[0] for name in pinned}


def test_an_image_is_listed_as_a_container(tmp_path: Path) -> None:
    archive = tmp_path / "party.tar"
    archive.write_bytes(b"layers")
    found = bill(tmp_path / "sbom.json", "--image", f"colonnade-party={archive}")
    (image,) = found["components"]
    assert (image["type"], image["name"]) == ("container", "colonnade-party")
    assert image["hashes"][0]["content"] == hashlib.sha256(b"layers").hexdigest()
