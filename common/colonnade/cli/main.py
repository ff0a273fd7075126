"""The ``colonnade`` command.

Start-up imports nothing heavy: each command module at the top level needs argparse only, and its
handler imports what it uses.
"""

import argparse
import importlib
import json
import os
import signal
import sys
import textwrap
from collections.abc import Sequence

from colonnade.cli.stopping import Stopped, stoppable
from colonnade.cli.streams import OutputLost, drop_output, prepare_streams, say
from colonnade.core.errors import (
    EXIT_BAD_INPUT,
    EXIT_CODES,
    EXIT_INTERNAL,
    EXIT_SIGNAL,
    EXIT_USAGE,
    BadInput,
    ColonnadeError,
)
from colonnade.core.text import printable

# In the order in which help lists them. Images for one role lack some of the modules.
_COMMANDS = (
    "colonnade.simulate.command",
    "colonnade.cli.plan",
    "colonnade.cli.job.verbs",
    "colonnade.cli.align.command",
    "colonnade.cli.coordinator",
    "colonnade.cli.party.verbs",
    "colonnade.cli.pki",
    "colonnade.cli.preflight",
    "colonnade.cli.health",
    "colonnade.cli.ledger",
    "colonnade.cli.fit",
    "colonnade.cli.predict",
    "colonnade.bench.command",
)
# What an image for one role leaves out, and where it is.
_ELSEWHERE = {
    "colonnade.server": "the coordinator's image",
    "colonnade.party": "the party's image",
    "colonnade.simulate": "the simulation's image",
    "colonnade.bench": "a full installation",
}
# The packages that only some commands need, by the extra that has them.
_EXTRAS = {
    "[postgres]": ("psycopg",),
    "[sklearn]": ("sklearn", "dp_accounting"),
    "[bench]": ("opendp",),
}
_NOT_TEXT = "an argument or a name is not valid UTF-8; spell it otherwise"
_CLOSED = "the reader of standard output went away before all was written"


def _epilog() -> str:
    lines = (
        textwrap.fill(meaning, 76, initial_indent=f"  {code:>3}  ", subsequent_indent=" " * 7)
        for code, meaning in EXIT_CODES.items()
    )
    return "\n".join(("exit codes:", *lines))


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="colonnade",
        description="Private learning across organizations that hold different columns.",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in _COMMANDS:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not name.startswith(error.name or "?"):
                raise
            continue  # an image for one role
        module.register(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    prepare_streams()
    arguments = argparse.Namespace()
    try:
        with stoppable():
            code = _run(arguments, argv)
            sys.stdout.flush()  # here, where it can still be told that it fails
    except ColonnadeError as error:
        return _report(arguments, error.code, str(error), error.exit_code)
    except ModuleNotFoundError as error:
        return _report(arguments, "not_installed", _absent(error), EXIT_USAGE)
    except UnicodeEncodeError:
        return _report(arguments, BadInput.code, _NOT_TEXT, BadInput.exit_code)
    except (Stopped, KeyboardInterrupt) as stopped:
        number = stopped.signal if isinstance(stopped, Stopped) else signal.SIGINT
        text = f"stopped by {signal.Signals(number).name}"
        return _report(arguments, "stopped", text, EXIT_SIGNAL + number)
    except BrokenPipeError:
        return _report(arguments, "closed", _CLOSED, EXIT_SIGNAL + signal.SIGPIPE)
    except OSError as error:
        if os.environ.get("COLONNADE_DEBUG"):
            raise
        return _report(arguments, BadInput.code, _system(error), EXIT_BAD_INPUT)
    except Exception as error:
        if os.environ.get("COLONNADE_DEBUG"):
            raise
        text = f"internal error ({type(error).__name__}); set COLONNADE_DEBUG=1 for the traceback"
        return _report(arguments, "internal", text, EXIT_INTERNAL)
    return code


def _run(arguments: argparse.Namespace, argv: Sequence[str] | None) -> int:
    """Parse into ``arguments``, which are then known to whoever reports a failure, and run them."""
    parser = build_parser()
    try:
        parser.parse_args(argv, arguments)
        if arguments.version:
            from importlib.metadata import version

            print(f"colonnade {version('colonnade')}")
            return 0
        if not hasattr(arguments, "handler"):
            parser.print_help()
            return EXIT_USAGE
        code: int = arguments.handler(arguments)
    except SystemExit:  # of argparse, which has printed help or what is wrong
        sys.stdout.flush()
        raise
    return code


def _system(error: OSError) -> str:
    """Say what the operating system refused, where no command said it better."""
    where = f"{error.filename}: " if error.filename else "a file cannot be read or written: "
    return f"{where}{error.strerror or type(error).__name__}"


def _absent(error: ModuleNotFoundError) -> str:
    """Say which part or package this installation lacks, and where it is."""
    name = error.name or "a package"
    where = _ELSEWHERE.get(".".join(name.split(".")[:2]))
    if where is not None:
        return f"this installation leaves out {name}; use {where}"
    package = name.split(".")[0]
    extra = next((extra for extra, has in _EXTRAS.items() if package in has), "")
    return f"{package} is not installed: pip install 'colonnade{extra}'"


def _report(arguments: argparse.Namespace, code: str, text: str, exit_code: int) -> int:
    try:
        if getattr(arguments, "json", False):
            print(json.dumps({"error": code, "message": text}))
        sys.stdout.flush()
    except (OSError, OutputLost):
        drop_output()
    say(f"colonnade: {printable(text)}")  # it may hold a peer's words
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
