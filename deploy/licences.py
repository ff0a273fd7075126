"""List the licences of everything that the images install: docs/reference/third-party.md.

    python deploy/licences.py          writes the page
    python deploy/licences.py --check  says whether it is up to date

Names come from the lock files, licences from the packages' own metadata, as far as they are
installed here in the pinned version; others are listed without.
"""

import sys
from pathlib import Path

from sbom import parts_of_locks

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "third-party.md"
LOCKS = ("party", "coordinator")
HEAD = """\
# Third-party licences

Colonnade itself is under the Apache License 2.0. Its images install these packages, pinned with
hashes in `deploy/requirements-party.txt` and `deploy/requirements-coordinator.txt`. Licences are as
the packages state them; the page is made by `make licences`, and a test compares it with the locks.

| package | licence |
|---|---|
"""


def page() -> str:
    """Return the page."""
    locks = [ROOT / "deploy" / f"requirements-{role}.txt" for role in LOCKS]
    found = {part.name: part.licence for part in parts_of_locks(locks)}
    rows = (f"| {name} | {_cell(licence)} |\n" for name, licence in sorted(found.items()))
    return HEAD + "".join(rows)


def _cell(licence: str) -> str:
    return " ".join(licence.split()).replace("|", "\\|") or "see the package"


def main() -> int:
    """Write the page, or compare it."""
    if "--check" in sys.argv[1:]:
        return int(PAGE.read_text("utf-8") != page())
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
