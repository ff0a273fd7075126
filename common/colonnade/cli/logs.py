"""The long-running commands: how they start, and what they log."""

import argparse
import asyncio
import gc
import json
import logging
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from colonnade.cli.streams import announce
from colonnade.core.text import printable
from colonnade.wire.limits import split_address


class Configured(Protocol):
    """What the configurations of both roles have."""

    @property
    def credentials(self) -> Path | None:
        """The folder of key and certificate; None without TLS."""

    @property
    def metrics(self) -> str | None:
        """Where metrics are shown."""


C = TypeVar("C", bound=Configured)


def add_config_options(parser: argparse.ArgumentParser, whose: str) -> None:
    """Add the configuration file, or a request for a commented one."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--config", type=Path, help=f"{whose} configuration file (TOML)")
    which.add_argument("--template", action="store_true", help="print a commented file and exit")


def add_process_options(parser: argparse.ArgumentParser, whose: str) -> None:
    """Add the options of a process that serves."""
    add_config_options(parser, whose)
    parser.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        help="show metrics here, not where the configuration says; for containers, whose loopback "
        "nobody else reaches",
    )


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
    """Serve from a configuration file until SIGINT or SIGTERM, or print a commented one."""
    if arguments.template:
        print(template, end="")
        return 0
    start_logging(as_json=arguments.json)
    config = _with_metrics(load(arguments.config), arguments.metrics)
    if config.credentials is None:
        announce("INSECURE: no TLS, names are believed; for tests on this machine only")
    gc.freeze()  # what start-up made stays; collections need not look at it again
    asyncio.run(serve(config))
    announce("stopped")
    return 0


def _with_metrics(config: C, address: str | None) -> C:
    if address is None:
        return config
    split_address(address)
    changed: C = replace(config, metrics=address)  # type: ignore[type-var]
    return changed
