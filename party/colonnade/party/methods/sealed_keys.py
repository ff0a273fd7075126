"""Where a party keeps the secret keys of sealed exchanges until their job ends.

A key is written, durably, before anything is sealed with it: after a crash it opens what came back.
It serves one job and stage and is erased with the job. Nothing of it is in a ledger but its name.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from colonnade.core.errors import BadInput
from colonnade.core.permissions import private
from colonnade.methods.sealed.packing import SEED_BYTES
from colonnade.methods.sealed.ring import DEGREE
from colonnade.methods.sealed.scheme import KeyContext, SecretKey

_SECRET_BYTES = 2 * DEGREE


class KeyStore(Protocol):
    """Keeps secret keys by what they serve for."""

    def load(self, context: KeyContext) -> SecretKey | None:
        """Return the key, or None if there is none."""

    def save(self, context: KeyContext, key: SecretKey) -> None:
        """Keep a key, durably; there must be none yet."""

    def erase(self, job: str) -> None:
        """Erase all keys of a job; asking again changes nothing."""

    def erase_others(self, jobs: Sequence[str]) -> None:
        """Erase the keys of all jobs but these."""


class MemoryKeys:
    """Keys that end with the process: for simulations and tests."""

    def __init__(self) -> None:
        self._keys: dict[KeyContext, SecretKey] = {}

    def load(self, context: KeyContext) -> SecretKey | None:
        """Return the key, or None if there is none."""
        return self._keys.get(context)

    def save(self, context: KeyContext, key: SecretKey) -> None:
        """Keep a key; there must be none yet."""
        if context in self._keys:
            raise ValueError("a key is there already")
        self._keys[context] = key

    def erase(self, job: str) -> None:
        """Erase all keys of a job; asking again changes nothing."""
        for context in [each for each in self._keys if each.job == job]:
            del self._keys[context]

    def erase_others(self, jobs: Sequence[str]) -> None:
        """Erase the keys of all jobs but these."""
        for job in {context.job for context in self._keys} - {*jobs}:
            self.erase(job)


class FileKeys:
    """Keys in a folder beside the party's ledger, a file each, for the owner alone.

    Erasing unlinks a file. On disks that keep old blocks the bytes may outlive it, so the folder
    belongs on an encrypted volume.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def beside(cls, ledger: Path) -> "FileKeys":
        """Return the keys beside the ledger in the folder ``ledger``."""
        return cls(ledger.parent / f"{ledger.name}.sealed-keys")

    def load(self, context: KeyContext) -> SecretKey | None:
        """Return the key, or None if there is none."""
        try:
            body = self._path(context).read_bytes()
        except FileNotFoundError:
            return None
        if len(body) != SEED_BYTES + _SECRET_BYTES:
            raise BadInput(f"{self._path(context)}: a key is damaged; cancel the job")
        secret = np.frombuffer(body[SEED_BYTES:], "<i2").astype(np.int64)
        return SecretKey(body[:SEED_BYTES], secret)

    def save(self, context: KeyContext, key: SecretKey) -> None:
        """Keep a key, durably; there must be none yet."""
        path = self._path(context)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        half = path.with_suffix(".new")
        with open(half, "wb", opener=private) as file:
            file.write(key.seed + key.secret.astype("<i2").tobytes())
            file.flush()
            os.fsync(file.fileno())
        os.link(half, path)  # fails if there is one already
        half.unlink()
        _sync(path.parent)
        _sync(path.parent.parent)

    def erase(self, job: str) -> None:
        """Erase all keys of a job; asking again changes nothing."""
        self._erase(self._folder / _name(job))

    def erase_others(self, jobs: Sequence[str]) -> None:
        """Erase the keys of all jobs but these."""
        kept = {_name(job) for job in jobs}
        for folder in self._folder.iterdir() if self._folder.is_dir() else ():
            if folder.name not in kept:
                self._erase(folder)

    def _erase(self, folder: Path) -> None:
        if not folder.is_dir():
            return
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        _sync(self._folder)

    def _path(self, context: KeyContext) -> Path:
        name = hashlib.sha256(context.tag()).hexdigest()
        return self._folder / _name(context.job) / f"{name}.key"


def _name(text: str) -> str:
    """Return a file's name for any text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
