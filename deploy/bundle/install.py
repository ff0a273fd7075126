"""Install Colonnade from an unpacked bundle, without a network: Python's own modules suffice.

    python3 install.py party --into /opt/colonnade
    python3 install.py coordinator --into /opt/colonnade

Every file is compared with SHA256SUMS first, and pip compares every wheel with the lock file.
Compare the digest of the bundle itself with the one that whoever made it told you.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECK_FAILED, BAD_INPUT = 1, 3  # as the commands have them


def check() -> str:
    """Return what is wrong with the bundle's files, or nothing."""
    told = {}
    for line in (HERE / "SHA256SUMS").read_text("utf-8").splitlines():
        digest, _, name = line.partition("  ")
        told[name] = digest
    there = {path.relative_to(HERE).as_posix() for path in HERE.rglob("*") if path.is_file()}
    if more := sorted(there - {*told, "SHA256SUMS"}):
        return f"{more[0]} is not in SHA256SUMS; unpack the bundle into an empty folder"
    for name, digest in told.items():
        if name not in there:
            return f"{name} is missing; unpack the bundle again"
        with (HERE / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                return f"{name} has changed; get the bundle again"
    return ""


def install(role: str, into: Path) -> None:
    """Make an environment with the role's wheels in it."""
    venv.create(into, with_pip=True)
    pip = [str(into / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install"]
    quiet = [*pip, "--quiet", "--no-index", "--find-links", str(HERE / "wheels")]
    lock = str(HERE / f"requirements-{role}.txt")
    subprocess.run([*quiet, "--require-hashes", "--requirement", lock], check=True)
    (package,) = (HERE / "wheels").glob("colonnade-*.whl")  # its digest is in SHA256SUMS
    subprocess.run([*quiet, "--no-deps", str(package)], check=True)


def main() -> int:
    """Check, then install."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("role", choices=("party", "coordinator"))
    parser.add_argument("--into", type=Path, required=True, help="folder to make")
    asked = parser.parse_args()
    if asked.into.exists():
        parser.exit(BAD_INPUT, f"{asked.into} exists already; name a new folder\n")
    if wrong := check():
        parser.exit(CHECK_FAILED, f"{wrong}\n")
    try:
        install(asked.role, asked.into)
    except subprocess.CalledProcessError:  # pip has said why
        shutil.rmtree(asked.into, ignore_errors=True)
        parser.exit(CHECK_FAILED, "nothing was installed; get the bundle again\n")
    sys.stdout.write(f"installed; run {asked.into / 'bin/colonnade'} --help\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
