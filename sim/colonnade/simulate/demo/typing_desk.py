"""Type commands as people do, and read what they answer."""

import contextlib
import io
import json
from typing import Any

from colonnade.cli.main import main
from colonnade.core.errors import EXIT_OK, JobEnded


def typed(*words: object) -> dict[str, Any]:
    """Run a command of `colonnade` with ``--json`` and return its object."""
    out, said = io.StringIO(), io.StringIO()
    command = [str(word) for word in words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        code = main([*command, "--json"])
    if code != EXIT_OK:
        reason = (said.getvalue().strip() or out.getvalue().strip()).splitlines()
        raise JobEnded(f"colonnade {' '.join(command[:2])}: {reason[-1] if reason else code}")
    lines = out.getvalue().strip().splitlines()
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    return found
