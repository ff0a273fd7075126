"""Make or install an offline bundle: everything that a machine without network needs, in one tar.

    python deploy/bundle/make.py --out colonnade-bundle.tar [--images]
    python3 colonnade-bundle/install.py party --into /opt/colonnade    # there, once unpacked

A bundle holds the wheels of both roles with their lock files, the package, the images if they were
asked for, a bill of materials (CycloneDX), ``SHA256SUMS`` of everything, and ``install.py``.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROLES = ("party", "coordinator")
SUMS = "SHA256SUMS"


def make(out: Path, *, images: bool, wheelhouse: Path | None = None) -> None:
    """Write a bundle; wheels are taken from ``wheelhouse`` instead of an index if it is given."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        wheels = folder / "wheels"
        wheels.mkdir()
        source = ["--no-index", "--find-links", str(wheelhouse)] if wheelhouse else []
        for role in ROLES:
            lock = ROOT / "deploy" / f"requirements-{role}.txt"
            (folder / lock.name).write_bytes(lock.read_bytes())
            _pip(
                "download",
                "--require-hashes",
                "--only-binary",
                ":all:",
                "--requirement",
                str(lock),
                "--dest",
                str(wheels),
                *source,
            )
        _build(wheels, source)
        archives = [_save(role, folder) for role in ROLES] if images else []
        for name in ("install.py", "INSTALL.md"):
            (folder / name).write_bytes((ROOT / "deploy/bundle" / name).read_bytes())
        listed = [word for each in archives for word in ("--image", f"{each.stem}={each}")]
        command = [sys.executable, str(ROOT / "deploy/sbom.py"), "--wheels", str(wheels), *listed]
        subprocess.run([*command, "--out", str(folder / "sbom.cdx.json")], check=True)
        (folder / SUMS).write_text("".join(_sums(folder)), "utf-8")
        _pack(folder, out)


def _pip(*arguments: str, python: str = sys.executable) -> None:
    quiet = ("--quiet", "--disable-pip-version-check")
    subprocess.run([python, "-m", "pip", *arguments, *quiet], check=True)


def _build(wheels: Path, source: Sequence[str]) -> None:
    """Build the package with the pinned tools, as the images do."""
    with tempfile.TemporaryDirectory() as tools:
        venv.create(tools, with_pip=True)
        python = str(Path(tools, "bin/python"))
        lock = str(ROOT / "deploy/requirements-build.txt")
        _pip("install", "--require-hashes", "--requirement", lock, *source, python=python)
        wheel = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels))
        _pip(*wheel, str(ROOT), python=python)


def _save(role: str, folder: Path) -> Path:
    """Build a role's image and write it beside the wheels."""
    name, target = f"colonnade-{role}", folder / f"colonnade-{role}.tar"
    build = ["docker", "build", "--file", "deploy/Dockerfile", "--target", role, "--tag", name]
    if base := os.environ.get("BASE_IMAGE"):
        build += ["--build-arg", f"BASE_IMAGE={base}"]
    # Empty or not, as Compose passes it: otherwise no layer of its builds would be used again.
    build += ["--build-arg", f"PIP_INDEX_URL={os.environ.get('PIP_INDEX_URL', '')}"]
    subprocess.run([*build, "."], cwd=ROOT, check=True)
    subprocess.run(["docker", "save", "--output", str(target), name], check=True)
    return target


def _sums(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != SUMS:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            yield f"{digest}  {path.relative_to(folder).as_posix()}\n"


def _pack(folder: Path, out: Path) -> None:
    """Write the folder as one tar: the same bytes for the same files."""
    when = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    with tarfile.open(out, "w") as tar:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = tarfile.TarInfo(f"colonnade-bundle/{path.relative_to(folder).as_posix()}")
            entry.size, entry.mtime, entry.mode = path.stat().st_size, when, 0o644
            with path.open("rb") as file:
                tar.addfile(entry, file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a bundle."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", action="store_true", help="build and add them; needs Docker")
    parser.add_argument("--wheelhouse", type=Path, help="take wheels from there, not from an index")
    asked = parser.parse_args(arguments)
    make(asked.out, images=asked.images, wheelhouse=asked.wheelhouse)
    sys.stdout.write(f"{asked.out}: {asked.out.stat().st_size / 1e6:.0f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
