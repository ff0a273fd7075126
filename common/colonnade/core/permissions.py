"""Files that are for their owner alone."""

import os
import stat


def private(path: str, flags: int) -> int:
    """Open or make a file that only its owner may read: an ``opener`` for `open`."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    found = os.fstat(descriptor).st_mode
    if stat.S_ISREG(found) and found & 0o077:  # it was there before
        os.fchmod(descriptor, 0o600)
    return descriptor
