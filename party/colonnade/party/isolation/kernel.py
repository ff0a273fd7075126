"""Calls of the Linux kernel that Python has no function for.

Each returns an error number, 0 for success: what a kernel or a container does not allow is said and
lived with, or refused, by the caller.
"""

import ctypes
import ctypes.util
import errno
import platform
import resource
import signal

# Numbers of system calls on the machines that there are images for; others get no filter.
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # and their names in audit(7)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_libc = ctypes.CDLL(None, use_errno=True)


def machine() -> str:
    """Return the kind of processor, as ``uname -m`` names it."""
    return platform.machine()


def call(name: str, *arguments: object) -> tuple[int, int]:
    """Call a function of the C library; return its result and the error number, 0 if it worked."""
    try:
        function = getattr(_libc, name)
    except AttributeError:
        return -1, errno.ENOSYS
    function.restype = ctypes.c_long
    ctypes.set_errno(0)
    result = int(function(*arguments))
    return result, ctypes.get_errno() or errno.EPERM if result < 0 else 0


def system_call(number: int, *arguments: object) -> tuple[int, int]:
    """Make a system call that the C library has no function for."""
    return call("syscall", ctypes.c_long(number), *arguments)


def _prctl(option: int, value: int) -> int:
    words = [ctypes.c_ulong(each) for each in (value, 0, 0, 0)]
    return call("prctl", ctypes.c_int(option), *words)[1]


def no_new_privileges() -> int:
    """Let no program that this process starts gain privileges."""
    return _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def no_core_dumps(*, traced: bool = False) -> int:
    """Write no memory to disk; unless ``traced``, let nobody of the same user read it either."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return 0 if traced else _prctl(_PR_SET_DUMPABLE, 0)


def die_with_parent() -> int:
    """Be killed when the process that started this one ends, however it ends."""
    return _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
