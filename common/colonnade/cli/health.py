"""``colonnade health``: ask a process on this machine whether it can do its work."""

import argparse
import json

from colonnade.core.errors import EXIT_CHECK_FAILED, EXIT_OK
from colonnade.wire.monitoring import LIVE, READY, check_health


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        "Ask the address that a configuration names as `health`. A coordinator is ready when it "
        "serves, a party while it is attached. Exit code 0 if so, 1 if not, 7 if nothing answers."
    )
    parser.add_argument("address", metavar="HOST:PORT", help="for example 127.0.0.1:9465")
    parser.add_argument("--live", action="store_true", help="only whether the process runs")


def run(arguments: argparse.Namespace) -> int:
    """Ask, and print the answer."""
    serving = check_health(arguments.address, LIVE if arguments.live else READY)
    if arguments.json:
        print(json.dumps({"serving": serving}))
    else:
        print("serving" if serving else "not serving")
    return EXIT_OK if serving else EXIT_CHECK_FAILED
