"""Keys and certificates on disk: private, small, whole, and durable.

What is wrong is told in one line that repeats no key material.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from colonnade.core.errors import BadInput
from colonnade.pki.certificates import Key, certificates_from_pem
from colonnade.pki.identity import UNREADABLE

MAX_BYTES = 1 << 16


def key_pem(key: Key) -> bytes:
    """Return a private key as it is kept on disk and handed to TLS."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def read_key(path: Path) -> Key:
    """Read a private key that nobody else may read."""
    mode = path.stat().st_mode & 0o7777
    if mode & ~0o600:
        raise BadInput(f"{path} has mode {mode:04o}; make it yours alone: chmod 0400 {path}")
    try:
        key = serialization.load_pem_private_key(read_bounded(path), password=None)
    except UNREADABLE:
        raise BadInput(f"{path} holds no private key that can be read") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise BadInput(f"{path} is not an ECDSA P-256 key")
    return key


def read_certificate(path: Path) -> x509.Certificate:
    """Read the first certificate of a file."""
    return certificates_from_pem(read_bounded(path), path)[0]


def read_bounded(path: Path) -> bytes:
    """Read a small file."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise BadInput(f"{path} is larger than {MAX_BYTES} bytes, so no certificate or key")
    return content


def write_whole(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that it is there whole, durably, or not at all."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(descriptor, mode)
            file.flush()
            os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def file_faults(path: Path) -> Iterator[None]:
    """Describe what the operating system refused in one line."""
    try:
        yield
    except OSError as error:
        what = error.strerror or type(error).__name__
        raise BadInput(f"{error.filename or path}: {what[0].lower()}{what[1:]}") from None
