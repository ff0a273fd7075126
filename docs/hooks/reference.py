"""Fill in the parts of the reference that the code itself states, while the site is built.

A page has a line ``<!-- generated: NAME -->`` where such a part goes. So what is shown cannot
differ from what the installed code does.
"""

import argparse
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from colonnade.cli.parser import Found, load, sentence
from colonnade.cli.table import COMMANDS, Command

_MARK = re.compile(r"^<!-- generated: ([a-z-]+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of a page."""
    return _MARK.sub(lambda found: _PARTS[found[1]](), markdown)


def command_line() -> str:
    """Return a section for every command, from the table and the parsers of its verbs."""
    return "\n".join(_sections((), COMMANDS))


def _sections(path: tuple[str, ...], command: Command) -> Iterator[str]:
    for name, each in command.verbs.items():
        found = Found((*path, name), each, ())
        yield f"{'#' * min(len(found.path) + 1, 3)} `{found.prog}`\n"
        if each.module:
            _, parser = load(found)
            yield f"{parser.description}\n"
            yield from _options(parser)
        else:
            yield f"{sentence(each.help)}\n"
        yield from _sections(found.path, each)


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    shown = [
        each
        for each in parser._actions
        if not isinstance(each, argparse._HelpAction) and each.help is not argparse.SUPPRESS
    ]
    if shown:
        yield "| argument | meaning |\n|---|---|"
        yield from (f"| {_name(each)} | {_meaning(each)} |" for each in shown)
        yield ""


def _name(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else _value(action)
    if not action.option_strings:
        return f"`{value}`"
    return ", ".join(f"`{option} {value}`".replace(" `", "`") for option in action.option_strings)


def _value(action: argparse.Action) -> str:
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest.upper()


def _meaning(action: argparse.Action) -> str:
    text = (action.help or "").replace("%%", "%").replace("|", "\\|")
    if action.required and action.option_strings:
        text = f"{text}; required" if text else "required"
    return text.replace("<", "&lt;").replace("*", "\\*")


def _template(module: str) -> str:
    return f"```toml\n{import_module(module).TEMPLATE}```"


_PARTS: dict[str, Callable[[], str]] = {
    "command-line": command_line,
    "coordinator-toml": lambda: _template("colonnade.server.config"),
    "party-toml": lambda: _template("colonnade.party.config"),
    "policy-toml": lambda: _template("colonnade.party.policy_file"),
}
