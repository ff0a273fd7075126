"""A checklist, and the checks that both roles have."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from colonnade.core.errors import BadIdentity, ColonnadeError, LowDisk
from colonnade.pki.authority import Credentials, load_credentials
from colonnade.pki.register import WARN_DAYS, days_left

T = TypeVar("T")
MAX_SKEW_S = 60.0
_LEAST_FREE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One check and what it found."""

    check: str
    ok: bool
    text: str


@dataclass(slots=True)
class Checklist:
    """Collects findings; a check that raises has found a problem."""

    findings: list[Finding] = field(default_factory=list)

    @contextmanager
    def check(self, name: str) -> Iterator[Callable[[str], None]]:
        """Run one check; call what it yields with what is well."""
        said: list[str] = []
        try:
            yield said.append
        except ColonnadeError as error:
            self.findings.append(Finding(name, ok=False, text=str(error)))
        except OSError as error:
            text = f"{error.filename or name}: {(error.strerror or 'failed').lower()}"
            self.findings.append(Finding(name, ok=False, text=text))
        else:
            self.findings.append(Finding(name, ok=True, text="; ".join(said)))

    def config(self, path: Path, load: Callable[[Path], T]) -> T | None:
        """Read the configuration, without which there is nothing to check."""
        found: list[T] = []
        with self.check("config") as say:
            found.append(load(path))
            say(str(path))
        return found[0] if found else None


def check_certificate(checklist: Checklist, folder: Path | None, role: str) -> Credentials | None:
    """Check the credentials of a role and return them."""
    found: list[Credentials] = []
    with checklist.check("certificate") as say:
        if folder is None:
            say("insecure: no certificate is used")
            return None
        credentials = load_credentials(folder)
        if credentials.identity.role != role:
            raise BadIdentity(f"{folder} is of {credentials.identity.uri}, not of a {role}")
        found.append(credentials)
        left = days_left(credentials.not_after, datetime.now(UTC))
        say(f"{credentials.identity.uri}, {left} days left")
        if left <= WARN_DAYS:
            say("renew it now: colonnade pki renew")
    return found[0] if found else None


def check_disk(checklist: Checklist, folder: Path) -> None:
    """Check that there is room where ``folder`` is, or will be."""
    with checklist.check("disk") as say:
        free = shutil.disk_usage(folder if folder.exists() else folder.parent).free
        if free < _LEAST_FREE_BYTES:
            raise LowDisk(
                f"{free >> 20} MiB free where {folder} is; make room for "
                f"{_LEAST_FREE_BYTES >> 20} MiB"
            )
        say(f"{free >> 20} MiB free")
