"""What each process of a party gives up, and what it says of that at its start."""

import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from colonnade.core.errors import BadInput
from colonnade.party.isolation.kernel import no_core_dumps, no_new_privileges
from colonnade.party.isolation.landlock import only_files, only_own_processes
from colonnade.party.isolation.namespace import own_network
from colonnade.party.isolation.seccomp import forbid_sockets

logger = logging.getLogger(__name__)
# What a program that speaks TLS reads of a machine: libraries, certificates, names, times.
_SYSTEM = (
    *("/usr", "/lib", "/lib64", "/bin", "/etc", "/sys", "/run/systemd/resolve"),
    *("/proc/self", "/proc/sys", "/proc/stat", "/proc/cpuinfo", "/proc/meminfo"),
)
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/zero")


@dataclass(frozen=True, slots=True)
class Gained:
    """Which measures were taken, by name; an error's text in place of those that failed."""

    measures: dict[str, str]

    @property
    def line(self) -> str:
        """All of them, for a log."""
        return " ".join(f"{name}={said}" for name, said in self.measures.items())

    def require(self, *names: str) -> None:
        """Refuse to go on unless one of some measures was taken."""
        if not any(self.measures[name] == "yes" for name in names):
            raise BadInput(
                f"isolation is required, and this machine allows none of {', '.join(names)} "
                f'({self.line}); allow it, or set isolation = "best-effort"'
            )


def isolate_vault(*, network: str = "") -> Gained:
    """Give up the network, other programs and core dumps; best before there are threads.

    ``network`` says what the vault needs one for, and then it keeps it.
    """
    kept = f"no:{network}_needs_a_network"
    gained = Gained(
        {
            "no_new_privileges": _said(no_new_privileges()),
            "namespace": kept if network else _said(own_network()),
            # After the namespace, which it forbids to leave.
            "filter": kept if network else _said(forbid_sockets()),
            "own_processes": _said(only_own_processes()),
            "no_core_dumps": _said(no_core_dumps()),  # last: /proc/self is closed from then on
        }
    )
    logger.info("vault_isolated %s", gained.line)
    return gained


def isolate_net(needed: Sequence[Path], private: Sequence[Path]) -> Gained:
    """Give up all files but the system's and ``needed``, so that ``private`` cannot be opened."""
    gained = {
        "no_new_privileges": _said(no_new_privileges()),
        "no_core_dumps": _said(no_core_dumps(traced=True)),
    }
    read = [*map(Path, (*_SYSTEM, *_DEVICES)), *_python()]
    exposed = [path for path in private if _within(path, [*read, *needed])]
    if exposed:  # it would be allowed, so nothing is promised
        gained["files"] = f"no:{exposed[0]}_lies_in_a_folder_that_net_needs"
    else:
        gained["files"] = _said(only_files(read, needed))
    logger.info("net_isolated %s", Gained(gained).line)
    return Gained(gained)


def _said(error: int) -> str:
    return "yes" if error == 0 else f"no:{os.strerror(error).replace(' ', '_')}"


def _python() -> list[Path]:
    """Return where Python and its packages are."""
    places = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path}
    return [Path(each).resolve() for each in places if each and Path(each).exists()]


def _within(path: Path, folders: Sequence[Path]) -> bool:
    resolved = path.resolve()
    return any(resolved.is_relative_to(folder.resolve()) for folder in folders)
