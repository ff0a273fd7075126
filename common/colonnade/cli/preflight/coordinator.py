"""What would go wrong at a coordinator."""

import socket
import time
from pathlib import Path

from colonnade.cli.preflight.checklist import (
    MAX_SKEW_S,
    Checklist,
    check_certificate,
    check_disk,
)
from colonnade.core.errors import BadInput
from colonnade.pki.register import load_denied
from colonnade.server.config import load_config
from colonnade.server.store.sql import Database
from colonnade.wire.limits import split_address


def check(checklist: Checklist, path: Path) -> None:
    """Check a coordinator's configuration and all that it names."""
    if (config := checklist.config(path, load_config)) is None:
        return
    check_certificate(checklist, config.credentials, "coordinator")
    with checklist.check("port") as say:
        host, port = split_address(config.listen)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                what = (error.strerror or "failed").lower()
                raise BadInput(f"cannot listen on {config.listen}: {what}") from None
        say(f"{config.listen} is free")
    with checklist.check("database") as say:
        store = Database(config.database)
        jobs = store.jobs()
        store.close()
        say(f"{len(jobs)} jobs")
        if jobs and jobs[0].submitted_at > time.time() + MAX_SKEW_S:
            raise BadInput("the newest job is from the future; this clock went back, set it by NTP")
    if config.denylist is not None:
        with checklist.check("denylist") as say:
            say(f"{len(load_denied(config.denylist))} fingerprints")
    check_disk(checklist, path.resolve().parent)
