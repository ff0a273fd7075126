"""The long-running commands: how they start, and what they log."""

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from colonnade.core.text import printable


class Configured(Protocol):
    """What the configurations of both roles have."""

    @property
    def credentials(self) -> Path | None:
        """The folder of key and certificate; None without TLS."""


C = TypeVar("C", bound=Configured)


class _PlainLines(logging.Formatter):
    """One line an event, whatever is in it: peers' texts and errors' may hold anything.

    The lines of a traceback are indented, so that none can be taken for an event.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        # Other ends of a line than "\n" are escaped, not followed.
        return "\n".join(
            f"    {printable(line)}" for line in super().formatException(ei).split("\n")
        )


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def start_logging(*, as_json: bool = False) -> None:
    """Send events of the package to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if as_json else _PlainLines())
    logger = logging.getLogger("colonnade")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def run_process(
    arguments: argparse.Namespace,
    template: str,
    load: Callable[[Path], C],
    serve: Callable[[C], Coroutine[Any, Any, None]],
) -> int:
    """Serve from a configuration file until told to stop, or print a commented one."""
    import asyncio
    import gc

    if arguments.template:
        print(template, end="")
        return 0
    start_logging(as_json=arguments.json)
    config = load(arguments.config)
    if config.credentials is None:
        print("INSECURE: no TLS, names are believed; for tests on this machine only", flush=True)
    gc.freeze()  # what start-up made stays; collections need not look at it again
    asyncio.run(serve(config))
    print("stopped", flush=True)
    return 0
