"""The ``colonnade`` command: run a verb and turn what went wrong into one line and an exit code."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence

from colonnade.cli.parser import NotInstalled, WrongUsage, ahead, find, group_help, load
from colonnade.cli.stopping import Stopped, stoppable
from colonnade.cli.streams import OutputLost, drop_output, prepare_streams, say
from colonnade.cli.table import ELSEWHERE
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import (
    EXIT_BAD_INPUT,
    EXIT_INTERNAL,
    EXIT_OK,
    EXIT_SIGNAL,
    EXIT_USAGE,
    BadInput,
    ColonnadeError,
)
from colonnade.core.text import printable

# The packages that only some commands need, by the extra that has them.
_EXTRAS = {
    "[postgres]": ("psycopg",),
    "[sklearn]": ("sklearn", "dp_accounting"),
    "[bench]": ("opendp",),
    "[sealed]": ("seal",),
}
# The options that the library's errors leave to us to name.
_HINTS = {
    "duplicate_job": "--again does so on purpose",
    "party_absent": "--parties says who takes part, --without who does not",
    "party_missing": "--middle declares it",
}
_NOT_TEXT = "an argument or a name is not valid UTF-8; spell it otherwise"
_CLOSED = "the reader of standard output went away before all was written"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    prepare_streams()
    words = sys.argv[1:] if argv is None else list(argv)
    as_json = "--json" in words  # known before a parser is, for whoever reports a failure
    try:
        with stoppable():
            code = _run(words)
            sys.stdout.flush()  # here, where it can still be told that it fails
    except ColonnadeError as error:
        return _report(error.code, _said(error), error.exit_code, as_json=as_json)
    except ModuleNotFoundError as error:
        return _report(NotInstalled.code, _absent(error), EXIT_USAGE, as_json=as_json)
    except UnicodeEncodeError:
        return _report(BadInput.code, _NOT_TEXT, BadInput.exit_code, as_json=as_json)
    except (Stopped, KeyboardInterrupt) as stopped:
        number = stopped.signal if isinstance(stopped, Stopped) else signal.SIGINT
        text = f"stopped by {signal.Signals(number).name}"
        return _report("stopped", text, EXIT_SIGNAL + number, as_json=as_json)
    except BrokenPipeError:
        return _report("closed", _CLOSED, EXIT_SIGNAL + signal.SIGPIPE, as_json=as_json)
    except OSError as error:
        if os.environ.get("COLONNADE_DEBUG"):
            raise
        return _report(BadInput.code, _system(error), EXIT_BAD_INPUT, as_json=as_json)
    except Exception as error:
        if os.environ.get("COLONNADE_DEBUG"):
            raise
        text = f"internal error ({type(error).__name__}); set COLONNADE_DEBUG=1 for the traceback"
        return _report("internal", text, EXIT_INTERNAL, as_json=as_json)
    return code


def _run(words: Sequence[str]) -> int:
    """Print help or the version, or run the verb that the words name."""
    found = find(words)
    if not found.path and found.rest[:1] == ("--version",):
        from importlib.metadata import version  # noqa: PLC0415 - as slow as the rest of help

        print(f"colonnade {version('colonnade')}")
        return EXIT_OK
    if found.wants_help or (not found.rest and not found.command.module):
        print(group_help(found), end="")
        return EXIT_OK if found.rest else EXIT_USAGE
    if not found.command.module:
        raise WrongUsage(f"{found.prog} has no option {found.rest[0]}; see '{found.prog} --help'")
    with ahead(found):
        module, parser = load(found)
        arguments = argparse.Namespace()
        try:
            parser.parse_args(found.rest, arguments)
        except SystemExit:  # of argparse, which has printed help
            return EXIT_OK
        code: int = module.run(arguments)
        return code


def _said(error: ColonnadeError) -> str:
    """Return an error's text; the library names parameters, people here set them by options."""
    if isinstance(error, BadArgument):
        return f"--{error.parameter.replace('_', '-')} {error.problem}"
    hint = _HINTS.get(error.code)
    return str(error) if hint is None else f"{error}: {hint}"


def _system(error: OSError) -> str:
    """Describe what the operating system refused, where no command said it better."""
    where = f"{error.filename}: " if error.filename else "a file cannot be read or written: "
    return f"{where}{error.strerror or type(error).__name__}"


def _absent(error: ModuleNotFoundError) -> str:
    """Describe which part or package this installation lacks, and where it is."""
    name = error.name or "a package"
    if (part := ".".join(name.split(".")[:2])) in ELSEWHERE:
        return str(NotInstalled(part))
    package = name.split(".")[0]
    extra = next((extra for extra, has in _EXTRAS.items() if package in has), "")
    return f"{package} is not installed: pip install 'colonnade{extra}'"


def _report(code: str, text: str, exit_code: int, *, as_json: bool) -> int:
    try:
        if as_json:
            print(json.dumps({"error": code, "message": text}))
        sys.stdout.flush()
    except (OSError, OutputLost):
        drop_output()
    say(f"colonnade: {printable(text)}")  # it may hold a peer's words
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
