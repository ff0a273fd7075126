"""How many commands lie between messy files and a model: counted in the tutorial that a test runs.

A block of shell lines begins with a comment that says who types them: ``# at the operator``, ``# at
each party`` or ``# at the`` and a party's name.
"""

import re
from pathlib import Path

from colonnade.core.errors import BadInput

OPERATOR, EACH = "operator", "each party"
PAGE = Path(__file__).parents[4] / "docs" / "tutorials" / "real-tables.md"
_BLOCK = re.compile(r"^```sh\n# at (?:the )?([a-z ]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def tutorial_commands(page: Path = PAGE) -> list[tuple[str, str]]:
    """Return who types each command of the page, in order."""
    try:
        text = page.read_text("utf-8")
    except OSError:
        raise BadInput(f"{page}: not found; commands are counted in a checkout") from None
    return [
        (who, line)
        for who, body in _BLOCK.findall(text)
        for line in body.replace("\\\n", " ").splitlines()
        if line.strip()
    ]


def count_commands(page: Path = PAGE) -> dict[str, int]:
    """Return the commands of the operator, and the most that one party types."""
    typed = [who for who, _ in tutorial_commands(page)]
    own = [typed.count(who) for who in {*typed} - {OPERATOR, EACH}]
    return {"party": typed.count(EACH) + max(own, default=0), "operator": typed.count(OPERATOR)}
