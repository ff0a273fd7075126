"""Turn a Matplotlib figure into SVG for a page: small, the same every time, light and dark.

Matplotlib is imported when a plot is drawn, and only its ``Figure`` objects are used. Ink, lines
and muted text are drawn in stand-in colours, which become the page's own.
"""

import io
import re
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from colonnade.report.markup import Markup, clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, LINE, MUTED, PAPER = "#010101", "#020202", "#030303", "#040404"
WIDTH = 5.2  # inches; the page scales it to its column

_PAGE_COLOURS = {
    INK: "var(--ink)",
    LINE: "var(--line)",
    MUTED: "var(--muted)",
    PAPER: "var(--paper)",
}
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "colonnade",
    "text.parse_math": False,  # names may hold dollar signs
    "font.size": 8.5,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 8.5,
    "axes.edgecolor": LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "legend.handlelength": 1.1,
    "legend.columnspacing": 1.2,
    "hatch.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
}
_LOCK = threading.Lock()  # Matplotlib's settings belong to the whole process
_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def draw(paint: Callable[["Figure"], None], *, key: str, label: str, height: float) -> Markup:
    """Return the figure that ``paint`` fills, as SVG.

    Parameters
    ----------
    key
        Starts the figure's ids, so that no two figures of a page share one.
    label
        What the figure shows, for those who cannot see it.
    height
        In inches.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    written = io.StringIO()
    defaults = {k: v for k, v in mpl.rcParamsDefault.items() if not k.startswith("backend")}
    settings: Any = {**defaults, **_SETTINGS}  # a user's own style file changes nothing
    with _LOCK, mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)  # text stays text
        figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor="none")
        paint(figure)
        for axes in figure.axes:
            axes.set_facecolor("none")
        figure.savefig(written, format="svg")
    return _tidy(written.getvalue(), key=key, label=label)


def _tidy(text: str, *, key: str, label: str) -> Markup:
    """Drop what a page does not need (the date, too), make ids and colours the page's own."""
    root = ET.fromstring(text)  # noqa: S314 (written by us a moment ago)
    for parent in root.iter():
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
    ids = _number_ids(root, key)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        attributes = dict(element.attrib)
        element.attrib.clear()
        if attributes.get("id") in ids:
            element.set("id", ids[attributes["id"]])
        for name, value in attributes.items():
            if name == _HREF:
                drawn = value.startswith("data:")  # a picture of its own, such as a heat map
                element.set("href", "".join(value.split()) if drawn else f"#{ids[value[1:]]}")
            elif name != "id":
                fixed = _REFERENCE.sub(lambda match: f"url(#{ids[match[1]]})", value)
                element.set(name, _style(fixed) if name == "style" else " ".join(fixed.split()))
        if element.tag != "text":
            element.text = None
        element.tail = None
    box = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update(
        {
            "viewBox": box,
            "role": "img",
            "aria-label": clean(label),
            "stroke-linejoin": "round",
        }
    )
    return Markup(ET.tostring(root, encoding="unicode"))


def _number_ids(root: ET.Element, key: str) -> dict[str, str]:
    """Return new names for the ids that something refers to."""
    used: dict[str, str] = {}
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == _HREF and value.startswith("data:"):
                continue
            found = [value[1:]] if name == _HREF else _REFERENCE.findall(value)
            for reference in found:
                used.setdefault(reference, f"{key}-{len(used)}")
    return used


def _style(value: str) -> str:
    value = re.sub(r"font-family: [^;]*;? ?", "", value)
    for colour, variable in _PAGE_COLOURS.items():
        value = value.replace(colour, variable)
    return value
