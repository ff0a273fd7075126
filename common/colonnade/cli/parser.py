"""From words to a verb of the table, its parser and its arguments."""

import argparse
import difflib
import gc
import importlib
import importlib.util
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import NoReturn

from colonnade.cli.table import COMMANDS, ELSEWHERE, Command
from colonnade.core.errors import EXIT_CODES, EXIT_USAGE, ColonnadeError

_HELP = ("-h", "--help")


class WrongUsage(ColonnadeError):
    """The words of a command make no command."""

    code = "usage"
    exit_code = EXIT_USAGE


class NotInstalled(WrongUsage):
    """The command needs what this installation leaves out."""

    code = "not_installed"

    def __init__(self, package: str) -> None:
        super().__init__(f"this installation leaves out {package}; use {ELSEWHERE[package]}")


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Refuse the words."""
        raise WrongUsage(f"{message}; see '{self.prog} --help'")


@dataclass(frozen=True, slots=True)
class Found:
    """The command that the first words name, and the words after them."""

    path: tuple[str, ...]
    command: Command
    rest: tuple[str, ...]

    @property
    def prog(self) -> str:
        """The words that name the command."""
        return " ".join(("colonnade", *self.path))

    @property
    def wants_help(self) -> bool:
        """Whether a group's help is asked for, which needs no verb."""
        return not self.command.module and bool(self.rest) and self.rest[0] in _HELP


def find(words: Sequence[str]) -> Found:
    """Follow the words into the table; refuse one that is no verb where one is due."""
    command, depth = COMMANDS, 0
    while depth < len(words) and words[depth] in command.verbs:
        command, depth = command.verbs[words[depth]], depth + 1
    found = Found(tuple(words[:depth]), command, tuple(words[depth:]))
    if command.verbs and found.rest and not found.rest[0].startswith("-"):
        raise WrongUsage(_unknown(found))
    return found


def _unknown(found: Found) -> str:
    word, prefix = found.rest[0], " ".join(found.path)
    close = difflib.get_close_matches(word.lower(), found.command.verbs)
    paths = [" ".join((*found.path, name)) for name in close]
    paths += [" ".join(path) for path, _ in verbs() if path[-1] == word and len(path) > 1]
    meant = " or ".join(repr(path) for path in dict.fromkeys(paths))
    hint = f"did you mean {meant}?" if meant else f"see '{found.prog} --help'"
    return f"there is no command {f'{prefix} {word}'.strip()!r}; {hint}"


def verbs() -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield every verb with its path."""

    def below(path: tuple[str, ...], command: Command) -> Iterator[tuple[tuple[str, ...], Command]]:
        if command.module:
            yield path, command
        for name, each in command.verbs.items():
            yield from below((*path, name), each)

    return below((), COMMANDS)


def missing(command: Command) -> str | None:
    """Return the first package that a command needs and this installation leaves out."""
    return next((name for name in command.needs if importlib.util.find_spec(name) is None), None)


def ahead(found: Found) -> AbstractContextManager[None]:
    """Begin what a verb prepares while it is imported; it ends with the block."""
    if not found.command.ahead or set(found.rest) & set(_HELP) or missing(found.command):
        return nullcontext()
    begun: AbstractContextManager[None] = importlib.import_module(found.command.ahead).begun()
    return begun


def load(found: Found) -> tuple[ModuleType, Parser]:
    """Import a verb's module and return it with its parser."""
    if (package := missing(found.command)) is not None:
        raise NotInstalled(package)
    gc.disable()  # an import makes no garbage, and looking for some takes an eighth of its time
    try:
        module = importlib.import_module(found.command.module)
    finally:
        gc.enable()
    others = [f"{found.prog} {name} ({each.help})" for name, each in found.command.verbs.items()]
    parser = Parser(
        prog=found.prog,
        description=sentence(found.command.help),
        epilog=f"See also: {', '.join(others)}" if others else None,
    )
    module.add_arguments(parser)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object; a process logs one a line"
    )
    return module, parser


def group_help(found: Found) -> str:
    """Return the help of a group, for which no verb is imported."""
    top = not found.path
    parser = argparse.ArgumentParser(
        prog=found.prog,
        description=sentence(found.command.help),
        epilog="\n\n".join(filter(None, (_left_out(found.command), _exit_codes() if top else ""))),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if top:
        parser.add_argument("--version", action="store_true", help="print the version and exit")
    what = "command" if top else "verb"
    listed = parser.add_subparsers(title=f"{what}s", metavar=what.upper())
    for name, each in found.command.verbs.items():
        if missing(each) is None:
            listed.add_parser(name, help=each.help)
    return parser.format_help()


def _left_out(group: Command) -> str:
    """Describe where the commands are that this installation leaves out."""
    places: dict[str, list[str]] = {}
    for name, each in group.verbs.items():
        if (package := missing(each)) is not None:
            places.setdefault(ELSEWHERE[package], []).append(name)
    lines = [f"  {', '.join(names)}: use {place}" for place, names in places.items()]
    return "\n".join(("not in this installation:", *lines)) if lines else ""


def _exit_codes() -> str:
    lines = (
        textwrap.fill(meaning, 76, initial_indent=f"  {code:>3}  ", subsequent_indent=" " * 7)
        for code, meaning in EXIT_CODES.items()
    )
    return "\n".join(("exit codes:", *lines))


def sentence(text: str) -> str:
    """Return a line of the table as a sentence."""
    return f"{text[0].upper()}{text[1:]}."
