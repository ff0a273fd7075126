"""Ask a person before something is spent that may be for nothing."""

import sys
from collections.abc import Sequence

from colonnade.core.errors import BadInput

_AGREED = ("y", "yes")


def confirm(warnings: Sequence[str], *, yes: bool) -> None:
    """Go on if there is no warning, or somebody agrees; else `BadInput`.

    Where nobody can be asked, only ``yes`` agrees.
    """
    if not warnings:
        return
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput("nothing was submitted because of a warning; --yes submits all the same")
    print("Submit all the same? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in _AGREED:
        raise BadInput("nothing was submitted")
