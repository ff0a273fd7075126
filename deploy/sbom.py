"""Write a software bill of materials: CycloneDX 1.6, JSON, the same bytes for the same input.

    python deploy/sbom.py --wheels wheelhouse --out sbom.cdx.json
    python deploy/sbom.py --lock deploy/requirements-party.txt --out party.cdx.json

From wheels: name, version, licence and SHA-256 of every file, and which needs which. From lock
files: name and version, with licences as far as this environment has the same version installed.
`--image NAME=FILE` adds an archive of a container image.
"""

import argparse
import email.message
import email.parser
import hashlib
import importlib.metadata
import os
import re
import sys
import tomllib
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
_NAMESPACE = uuid.UUID("8d5a53a6-95c4-5e0f-9a10-d1b1f7a4f6c1")  # of these documents
_PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
_MAX_LICENCE = 80  # a longer one is a text, not a name


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is shipped."""

    name: str
    version: str
    licence: str = ""
    sha256: str = ""
    needs: frozenset[str] = field(default=frozenset())
    image: bool = False


def parts_of_wheels(folder: Path) -> Iterator[Part]:
    """Yield what the wheels of a folder are."""
    for path in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            name = next(each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
            said = email.parser.Parser().parsestr(wheel.read(name).decode())
        yield _part(said, sha256=_sha256(path))


def parts_of_locks(locks: Iterable[Path]) -> Iterator[Part]:
    """Yield what lock files pin."""
    pinned = {
        (canonicalize_name(name), version)
        for lock in locks
        for name, version in _PINNED.findall(lock.read_text("utf-8"))
    }
    for name, version in sorted(pinned):
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            yield Part(name, version)
            continue
        yield _part(_message(found)) if found.version == version else Part(name, version)


def part_of_image(text: str) -> Part:
    """Return an image's archive, as ``NAME=FILE`` names it."""
    name, _, path = text.partition("=")
    return Part(name, version(), sha256=_sha256(Path(path)), image=True)


def version() -> str:
    """Return the version of this tree."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return str(document["project"]["version"])


def document(parts: Sequence[Part]) -> str:
    """Return the bill of ``parts`` as text; `ValueError` if it does not fit the schema."""
    licences = LicenseFactory()
    made = {each.name: _component(each, licences) for each in parts if each.name != "colonnade"}
    root = _component(
        next((each for each in parts if each.name == "colonnade"), Part("colonnade", version())),
        licences,
    )
    bom = Bom(components=made.values(), metadata=BomMetaData(component=root, timestamp=_time()))
    known = made | {"colonnade": root}
    needed_by_others = {name for part in parts for name in part.needs if part.name != "colonnade"}
    direct = [made[name] for name in sorted(made.keys() - needed_by_others)]
    bom.register_dependency(root, direct)
    for part in parts:
        needed = [known[name] for name in sorted(part.needs) if name in known]
        bom.register_dependency(known[part.name], needed)
    told = "\n".join(f"{each.name} {each.version} {each.sha256}" for each in parts)
    bom.serial_number = uuid.uuid5(_NAMESPACE, told)
    text = JsonV1Dot6(bom).output_as_string(indent=2) + "\n"
    if (wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)) is not None:
        raise ValueError(f"the bill of materials does not fit its schema: {wrong}")
    return text


def _part(said: email.message.Message, *, sha256: str = "") -> Part:
    needs = set()
    for line in said.get_all("Requires-Dist") or ():
        needed = Requirement(line)
        if needed.marker is None or needed.marker.evaluate({"extra": ""}):
            needs.add(str(canonicalize_name(needed.name)))
    name = str(canonicalize_name(str(said["Name"])))
    return Part(name, str(said["Version"]), _licence(said), sha256, frozenset(needs))


def _licence(said: email.message.Message) -> str:
    """Return an SPDX expression, or the name that the classifiers or the old field have."""
    if expression := said["License-Expression"]:
        return str(expression)
    classifiers = [str(each) for each in said.get_all("Classifier") or ()]
    named = [each.rsplit(" :: ", 1)[-1] for each in classifiers if each.startswith("License :: ")]
    if named := [each for each in named if each != "OSI Approved"]:
        return ", ".join(sorted(named))
    old = str(said["License"] or "").strip()
    return old if "\n" not in old and len(old) <= _MAX_LICENCE else ""


def _message(found: importlib.metadata.Distribution) -> email.message.Message:
    return email.parser.Parser().parsestr(found.read_text("METADATA") or "")


def _component(part: Part, licences: LicenseFactory) -> Component:
    purl = PackageURL(type="oci" if part.image else "pypi", name=part.name, version=part.version)
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=part.sha256)] if part.sha256 else []
    return Component(
        type=ComponentType.CONTAINER if part.image else ComponentType.LIBRARY,
        name=part.name,
        version=part.version,
        purl=purl,
        bom_ref=f"{part.name}@{part.version}",
        hashes=hashes,
        licenses=[licences.make_from_string(part.licence)] if part.licence else [],
    )


def _time() -> datetime:
    """Return the time of the sources, where a build states it: not that of the build."""
    return datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    """Write the bill that the arguments ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wheels", type=Path, help="a folder with wheels")
    parser.add_argument("--lock", type=Path, action="append", default=[], help="pinned versions")
    parser.add_argument("--image", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    parts = list(parts_of_wheels(asked.wheels)) if asked.wheels else []
    parts += [
        each for each in parts_of_locks(asked.lock) if each.name not in {p.name for p in parts}
    ]
    parts += [part_of_image(each) for each in asked.image]
    if not parts:
        parser.error("nothing to list; name --wheels, --lock or --image")
    asked.out.write_text(document(parts), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
