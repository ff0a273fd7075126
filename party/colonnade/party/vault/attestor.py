"""Attestations by certificate, in a process that holds no certificate's key.

The key is net's. The vault has net sign, believes the result only once it has checked it, and
checks what peers signed by a root of its own keeping: `keep_root` takes it over once, at the first
start, from the folder in which a person installed it. Net may write in that folder (it renews the
certificate there), so a root that appears in it later is not believed.

Privacy: whoever controls net can attest in this party's name, as a thief of its certificate could;
together with the coordinator it can then stand in this party's place before its *peers*. It cannot
stand in a peer's place before this vault, which is what protects the people whom this party lists.
"""

import logging
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from colonnade.core.errors import BadIdentity
from colonnade.methods.alignment.sizes import ATTESTATION_BYTES
from colonnade.pki.attestation import check_attestation
from colonnade.pki.authority import ROOT
from colonnade.pki.certificates import certificates_from_pem
from colonnade.pki.files import MAX_BYTES, read_bounded, write_whole
from colonnade.pki.identity import PARTY, Identity

logger = logging.getLogger(__name__)
KEPT_ROOT = "federation-root.pem"


@dataclass(frozen=True, slots=True)
class NetAttestor:
    """Has net sign with the party's certificate; checks everything here."""

    ask: Callable[[bytes, int], bytes]  # statement and size; from any thread but the loop's
    own: Identity
    root_pem: bytes

    def attest(self, statement: bytes) -> bytes:
        """Return the own chain and the signature of ``statement``, padded to one size."""
        attestation = self.ask(statement, ATTESTATION_BYTES)
        self.check(attestation, statement, party=self.own.name)
        return attestation

    def check(self, attestation: bytes, statement: bytes, *, party: str) -> None:
        """Refuse an attestation unless ``party`` of the own federation signed ``statement``."""
        member = Identity(self.own.federation, PARTY, party)
        root, size = self.root_pem, ATTESTATION_BYTES
        check_attestation(attestation, statement, member, root_pem=root, size=size)


def keep_root(ledger_folder: Path, credentials: Path) -> bytes:
    """Return the federation's root as it was when the party first started."""
    kept = ledger_folder / KEPT_ROOT
    if kept.exists():
        root = read_bounded(kept)
    else:
        root = _content(credentials / ROOT) or b""
        certificates_from_pem(root, str(credentials / ROOT))
        write_whole(kept, root)
    if (installed := credentials / ROOT).exists() and _content(installed) != root:
        raise BadIdentity(
            f"{installed} is not the root that this party started with; if the federation has a "
            f"new one, compare its fingerprint and remove {kept}"
        )
    return root


def _content(path: Path) -> bytes | None:
    """Return what a small file holds; of what is no file nothing, for net may have put it there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would block
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
