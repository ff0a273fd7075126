"""What both consoles share on the command line: where they listen, and their one-time address."""

import argparse
import importlib.util
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from colonnade.core.errors import EXIT_OK, BadInput

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from colonnade.console.guard import Door


def add_console_options(parser: argparse.ArgumentParser) -> None:
    """Add where the page is served."""
    parser.add_argument(
        "--listen",
        default="127.0.0.1:0",
        metavar="HOST:PORT",
        help="loopback address; port 0, the default, takes any",
    )
    parser.add_argument(
        "--published",
        metavar="HOST:PORT",
        help="in a container: the loopback address of the host where the port is published",
    )


def require_console() -> None:
    """Refuse to start without what the pages need."""
    if importlib.util.find_spec("starlette") is None or importlib.util.find_spec("uvicorn") is None:
        raise BadInput("the console needs an extra: pip install 'colonnade[console]'")


def run_console(arguments: argparse.Namespace, build: "Callable[[Door], Starlette]") -> int:
    """Serve an application until interrupted."""
    from colonnade.console.guard import Door
    from colonnade.console.serve import open_socket, serve

    listening, authority = open_socket(arguments.listen, arguments.published)
    door = Door(authority)

    def ready(link: str) -> None:
        if arguments.json:
            print(json.dumps({"link": link}), flush=True)
            return
        print("open this address in a browser on this machine; it works once:")
        print(f"  {link}", flush=True)

    with listening:
        serve(listening, build(door), door, ready=ready)
    return EXIT_OK
