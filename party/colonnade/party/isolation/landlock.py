"""Landlock: a process gives up all files but those that it names, for good.

This keeps what net may become from a table and a ledger that the same user owns. It also keeps it
from the memory of processes outside (`ptrace`), whoever its user is. See landlock(7).
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
_FILES_ONLY = _EXECUTE | 1 << 1 | _READ_FILE | _TRUNCATE | _DEVICES


def only_files(read: Sequence[Path], write: Sequence[Path]) -> int:
    """Keep access to files and folders named here, and below them; return an error number."""
    version, error = system_call(_CREATE, None, ctypes.c_size_t(0), _VERSION_ASKED)
    if error != 0:
        return error
    rights = _ALL
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _DEVICES)):
        rights |= right if version >= since else 0
    rules, error = system_call(_CREATE, struct.pack("=Q", rights), ctypes.c_size_t(8), 0)
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
