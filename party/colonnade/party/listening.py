"""The socket at which a vault waits for net, where each is started by itself."""

import os
import socket
from pathlib import Path

from colonnade.core.errors import BadInput


def listen(path: Path, mode: int) -> socket.socket:
    """Return a socket that listens at ``path``, for whom ``mode`` lets in."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # of an earlier process; two of them the ledger refuses
        # With this mode from the start and not by chmod: whoever else may write in the folder could
        # have put a link to another file in the place of the socket meanwhile.
        before = os.umask(0o777 & ~mode)
        try:
            listening.bind(str(path))
        finally:
            os.umask(before)
        listening.listen(1)
    except OSError as error:
        listening.close()
        raise BadInput(f"no socket can be made at {path}: {error.strerror or error}") from None
    return listening
