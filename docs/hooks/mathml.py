"""Turn formulas into MathML while the site is built, so that no page needs a script for them."""

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">(?:\\\(|\\\[)(?P<latex>.*?)(?:\\\)|\\\])</(?P=tag)>',
    re.DOTALL,
)


def on_page_content(html: str, **_: Any) -> str:
    """Replace every formula that the Markdown extension marked."""
    return _FORMULA.sub(_mathml, html)


def _mathml(found: re.Match[str]) -> str:
    latex = unescape(found["latex"]).strip()
    shown: str = convert(latex, display="block" if found["tag"] == "div" else "inline")
    return shown
