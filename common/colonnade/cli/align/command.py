"""``colonnade align``: the group of verbs."""

import argparse

from colonnade.cli.align import show, submit, watch

_VERBS = {
    "submit": ("have parties' people put in one order", submit),
    "watch": ("follow an alignment until it ends", watch),
    "show": ("show an alignment: its overlap, and who learns what", show),
}


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser("align", help="put parties' people in one order, privately")
    verbs = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    for name, (text, module) in _VERBS.items():
        verb = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        module.add_arguments(verb)
        verb.add_argument("--json", action="store_true", help="print one JSON object")
        verb.set_defaults(handler=module.run)
