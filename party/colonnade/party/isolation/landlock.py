"""Landlock: a process gives up all files but those that it names, and other processes, for good.

This keeps what net may become from a table and a ledger that the same user owns. It also keeps it
from the memory of processes outside (`ptrace`, and /proc), whoever its user is, and where the
kernel can (version 6) from signals to them and from their abstract sockets. See landlock(7).
"""

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from colonnade.party.isolation.kernel import system_call

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # on all machines
_VERSION_ASKED, _BENEATH = 1, 1
_EXECUTE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 2, 1 << 3
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
_ALL = (1 << 13) - 1  # the rights of the first version
_REFER, _TRUNCATE, _DEVICES = 1 << 13, 1 << 14, 1 << 15  # since versions 2, 3 and 5
_BLOCK_DEVICES = 1 << 11
_SCOPES, _ABSTRACT_SOCKETS, _SIGNALS = 6, 1 << 0, 1 << 1  # since version 6
_FILES_ONLY = _EXECUTE | 1 << 1 | _READ_FILE | _TRUNCATE | _DEVICES


def only_files(read: Sequence[Path], write: Sequence[Path]) -> int:
    """Keep access to files and folders named here, and below them; return an error number."""
    version, error = _version()
    if error != 0:
        return error
    rights = _ALL
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _DEVICES)):
        rights |= right if version >= since else 0
    rules, error = _ruleset(version, rights)
    if error != 0:
        return error
    try:
        wanted = [(path, _READ) for path in read] + [(path, rights) for path in write]
        for path, allowed in wanted:
            if (error := _add(rules, path, allowed)) not in (0, errno.ENOENT):
                return error
        return system_call(_RESTRICT, rules, 0)[1]
    finally:
        os.close(rules)


def only_own_processes() -> int:
    """Give up other processes' memory, and signals to them; return an error number.

    Only processes that this one starts are its own. A set of rules has to be about some right to
    files; that to make block devices is one that nobody here has a use for.
    """
    version, error = _version()
    if error != 0:
        return error
    rules, error = _ruleset(version, _BLOCK_DEVICES)
    if error != 0:
        return error
    try:
        return system_call(_RESTRICT, rules, 0)[1]
    finally:
        os.close(rules)


def _version() -> tuple[int, int]:
    return system_call(_CREATE, None, ctypes.c_size_t(0), _VERSION_ASKED)


def _ruleset(version: int, rights: int) -> tuple[int, int]:
    """Return a set of rules about these rights, and about signals and sockets if it can be."""
    rules = struct.pack("=Q", rights)
    if version >= _SCOPES:
        rules = struct.pack("=QQQ", rights, 0, _ABSTRACT_SOCKETS | _SIGNALS)
    return system_call(_CREATE, rules, ctypes.c_size_t(len(rules)), 0)


def _add(rules: int, path: Path, allowed: int) -> int:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        return error.errno or errno.ENOENT
    try:
        rights = allowed if path.is_dir() else allowed & _FILES_ONLY
        rule = struct.pack("=Qi", rights, place)
        return system_call(_ADD, rules, _BENEATH, rule, 0)[1]
    finally:
        os.close(place)
