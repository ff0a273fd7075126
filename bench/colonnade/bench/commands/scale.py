"""``colonnade bench scale``: rows, machines, clients, connections and processes."""

import argparse
import json
from typing import Any

from colonnade.bench.parts import table
from colonnade.bench.scale.sections import MODULES, section
from colonnade.bench.scratch import add_folder_option, say, scratch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = "How time and memory grow with what there is more of."
    parser.add_argument("--quick", action="store_true", help="less of each, under 60 s")
    parser.add_argument(
        "--only",
        metavar="SECTION",
        action="append",
        choices=tuple(MODULES),
        help=f"one of {', '.join(MODULES)}; may be repeated",
    )
    add_folder_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    result: dict[str, Any] = {}
    for name in arguments.only or MODULES:
        say(name)
        with scratch(arguments.folder) as folder:
            result |= section(name)(folder, quick=arguments.quick)
    print(json.dumps(result) if arguments.json else "\n\n".join(map(_text, result.items())))
    return 0


def _text(item: tuple[str, Any]) -> str:
    """Return a field as a table if it is a list of rows or one row, else on a line."""
    name, found = item
    rows = found if isinstance(found, list) else [found]
    if not rows or not all(isinstance(row, dict) for row in rows):
        return f"{name} {found}"
    return table(title=name)(rows)
