"""What an authority has issued, and whom it has revoked.

Beside the keys an authority keeps ``issued/``, every certificate that it signed, and
``revoked.txt``, the keys that it signs for no more. The latter is a denylist as coordinators read
it: one fingerprint a line. A revoked member is refused as soon as a coordinator's denylist names
its key; revoking here alone keeps it from being renewed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from colonnade.core.errors import BadIdentity, BadInput
from colonnade.pki.certificates import certificate_pem, certificates_from_pem
from colonnade.pki.files import file_faults, read_bounded, write_whole
from colonnade.pki.identity import fingerprint, fingerprint_from_text, identity_of

ISSUED, REVOKED, _ROOT = "issued", "revoked.txt", "root.pem"
WARN_DAYS = 14
"""From so many days before its end on, a certificate is warned about and may be renewed."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate that an authority signed."""

    identity: str
    fingerprint: str
    not_after: datetime
    revoked: bool

    def days_left(self, now: datetime) -> int:
        """Return how many whole days it is valid yet; less than none if it has ended."""
        return days_left(self.not_after, now)


def days_left(not_after: datetime, now: datetime) -> int:
    """Return how many whole days there are until a certificate's end."""
    return (not_after - now).days


def note_issued(authority: Path, leaf: x509.Certificate) -> None:
    """Keep a certificate that was signed."""
    folder = authority / ISSUED
    folder.mkdir(mode=0o700, exist_ok=True)
    write_whole(folder / f"{leaf.serial_number:040x}.pem", certificate_pem(leaf))


def issued(authority: Path) -> list[Issued]:
    """Return the newest certificate of every member and key, by name."""
    with file_faults(authority):
        if not (authority / _ROOT).is_file():
            raise BadInput(f"{authority} is no folder of an authority; it has no {_ROOT}")
        paths = sorted((authority / ISSUED).glob("*.pem"))
        leaves = [certificates_from_pem(read_bounded(path), path)[0] for path in paths]
    denied, newest = revoked_keys(authority), dict[tuple[str, str], Issued]()
    for leaf in sorted(leaves, key=lambda each: each.not_valid_after_utc):
        name, key = identity_of(leaf).uri, fingerprint(leaf)
        newest[name, key] = Issued(name, key, leaf.not_valid_after_utc, key in denied)
    return [newest[key] for key in sorted(newest)]


def revoked_keys(authority: Path) -> frozenset[str]:
    """Return the keys that an authority signs for no more."""
    path = authority / REVOKED
    return load_denied(path) if path.exists() else frozenset()


def load_denied(path: Path) -> frozenset[str]:
    """Read a denylist: one fingerprint a line, ``#`` begins a comment.

    A line that is no fingerprint refuses the file: a typing error must not admit whom it denies.
    """
    with file_faults(path):
        lines = path.read_text("utf-8", "replace").splitlines()
    return _denied(lines, path)


def _denied(lines: Sequence[str], path: Path) -> frozenset[str]:
    denied = set()
    for number, line in enumerate(lines, start=1):
        if text := line.partition("#")[0].strip():
            try:
                denied.add(fingerprint_from_text(text))
            except BadIdentity as error:
                raise BadInput(f"{path}, line {number}: {error}") from None
    return frozenset(denied)


def revoke(authority: Path, who: str, *, reason: str, denylist: Path | None = None) -> list[Issued]:
    """Revoke the keys of a member, named by its URI, its name or a fingerprint; return them.

    ``denylist`` is a coordinator's, to which the keys are added too.
    """
    if not reason.strip() or not reason.isprintable():
        raise BadInput("the reason is empty, or cannot be shown; say why, for the record")
    if denylist is not None and not denylist.is_file():  # one that nobody reads denies nobody
        raise BadInput(f"{denylist} is no file; name the denylist that the coordinator reads")
    known = issued(authority)
    found = [each for each in known if who in (each.identity, each.identity.split("/")[-1])]
    if not found:
        print_ = _fingerprint(who)
        found = [each for each in known if each.fingerprint == print_]
    if not found:
        raise BadInput(f"the authority issued nothing to {who!r}; see what it issued")
    note = f"{datetime.now(UTC):%Y-%m-%d} {reason.strip()}"
    lines = [f"{each.fingerprint}  # {each.identity} {note}" for each in found]
    paths = [authority / REVOKED, *([denylist] if denylist is not None else [])]
    texts = [_with_lines(path, lines) for path in paths]  # both can be read, or neither changes
    for path, text in zip(paths, texts, strict=True):
        with file_faults(path):
            write_whole(path, text)
    return found


def _fingerprint(text: str) -> str:
    try:
        return fingerprint_from_text(text)
    except BadIdentity:
        return ""


def _with_lines(path: Path, lines: Sequence[str]) -> bytes:
    """Return a denylist that can be read, with lines added to it."""
    with file_faults(path):
        before = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
    denied = _denied(before, path)
    new = [line for line in lines if fingerprint_from_text(line.split()[0]) not in denied]
    after = [*before, *new]
    _denied(after, path)
    return ("\n".join(after) + "\n").encode()
