"""A command's handler, called as the command line calls it."""

import argparse
from typing import Any


def handle(command: Any, *arguments: object) -> int:
    """Parse ``arguments`` with the parser that ``command`` registers, and run what they ask for.

    Errors are raised, not printed: `colonnade.cli.main` is what turns them into lines.
    """
    parser = argparse.ArgumentParser(prog="colonnade")
    command.register(parser.add_subparsers(required=True))
    parsed = parser.parse_args([*map(str, arguments)])
    code: int = parsed.handler(parsed)
    return code
