"""Fill in the parts of the reference that the code itself states, while the site is built.

A page has a line ``<!-- generated: NAME -->`` where such a part goes. So what is shown cannot
differ from what the installed code does.
"""

import argparse
import re
from collections.abc import Callable, Iterator
from typing import Any

_MARK = re.compile(r"^<!-- generated: ([a-z-]+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of a page."""
    return _MARK.sub(lambda found: _PARTS[found[1]](), markdown)


def command_line() -> str:
    """Return a section for every command, from the parsers."""
    from colonnade.cli.main import build_parser

    return "\n".join(_sections(build_parser(), level=2))


def _sections(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    groups = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if level > 2:
        yield f"{'#' * (level - 1)} `{parser.prog}`\n"
        if parser.description:
            yield f"{parser.description}\n"
        yield from _options(parser)
    for group in groups:
        for command in dict.fromkeys(group.choices.values()):
            yield from _sections(command, min(level + 1, 4))


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    shown = [
        each
        for each in parser._actions
        if not isinstance(each, argparse._HelpAction | argparse._SubParsersAction)
        and each.help is not argparse.SUPPRESS
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
    from importlib import import_module

    return f"```toml\n{import_module(module).TEMPLATE}```"


_PARTS: dict[str, Callable[[], str]] = {
    "command-line": command_line,
    "coordinator-toml": lambda: _template("colonnade.server.config"),
    "party-toml": lambda: _template("colonnade.party.config"),
    "policy-toml": lambda: _template("colonnade.party.policy"),
}
