"""A filter of system calls: no sockets, no other programs, no tracing of other processes.

A list of what is forbidden, not of what is allowed: NumPy, SQLite and DuckDB differ between
versions in what they call, and the purpose is narrow. A process under it has the sockets that it
was given and can make pairs of streams, which lead nowhere else; from a pair of datagram sockets it
could still send to any other that has a path. The filter cannot be taken off again.
"""

import ctypes
import errno
import struct

from colonnade.party.isolation.kernel import MACHINES, machine, system_call

# By name: the number on x86_64 and on aarch64.
FORBIDDEN = {
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "io_uring_setup": (425, 425),  # opens sockets without the calls above
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),  # another process's sockets
    "unshare": (272, 97),
    "setns": (308, 268),  # back into a network
    "mount": (165, 40),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
}
_PAIR = {"x86_64": 53, "aarch64": 199}  # socketpair
_STREAM, _TYPES = 1, 0xF  # of a socket; what else is in that argument are flags
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_FILTER, _ALL_THREADS = 1, 1
_LOAD, _EQUAL, _AT_LEAST, _RETURN, _AND = 0x20, 0x15, 0x35, 0x06, 0x54  # classic BPF
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _MACHINE, _SECOND = 0, 4, 24  # where they and an argument are in what a filter sees
_X32 = 0x40000000  # a second set of numbers on x86_64, with the same calls


def program(kind: str) -> bytes:
    """Return the filter for a kind of processor."""
    column = list(MACHINES).index(kind)
    forbidden = [numbers[column] for numbers in FORBIDDEN.values()]
    refuse = _ERROR | errno.EPERM
    lines = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, MACHINES[kind]),
        (_RETURN, 0, 0, _KILL),  # of another kind: the numbers would mean something else
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, len(forbidden) + 5, 0, _X32),
        *((_EQUAL, len(forbidden) - place + 4, 0, each) for place, each in enumerate(forbidden)),
        (_EQUAL, 0, 3, _PAIR[kind]),
        (_LOAD, 0, 0, _SECOND),
        (_AND, 0, 0, _TYPES),
        (_EQUAL, 0, 1, _STREAM),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, refuse),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def forbid_sockets() -> int:
    """Install the filter for all threads; return an error number, 0 for success."""
    kind = machine()
    if kind not in MACHINES:
        return errno.ENOSYS
    code = ctypes.create_string_buffer(program(kind))
    length = (len(code) - 1) // 8
    header = struct.pack("@HP", length, ctypes.addressof(code))
    return system_call(_SECCOMP[kind], _SET_FILTER, ctypes.c_ulong(_ALL_THREADS), header)[1]
