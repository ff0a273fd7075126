"""Templates of the consoles: the report's parts and style, every value escaped."""

import functools
import time
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response

from colonnade import report
from colonnade.console.guard import base
from colonnade.console.names import starting, symbols, who, whose
from colonnade.console.times import moment
from colonnade.report.render import finalize

_HERE, _REPORT = Path(__file__).parent, Path(report.__file__).parent
ASSETS = {
    **{name: _REPORT / "assets" / name for name in ("tokens.css", "components.css", "report.css")},
    "ui.js": _REPORT / "assets" / "ui.js",
    **{name: _HERE / "assets" / name for name in ("console.css", "console.js", "icon.svg")},
}
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@functools.cache
def environment() -> Environment:
    """Return the templates' environment; a value that is missing is an error."""
    made = Environment(
        loader=ChoiceLoader(
            [FileSystemLoader(_HERE / "templates"), FileSystemLoader(_REPORT / "templates")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    made.filters |= {"who": who, "whose": whose, "starting": starting, "symbols": symbols}
    made.filters["at"] = lambda at: moment(at, time.time())
    made.globals["base"] = base
    return made


def rendered(template: str, **values: object) -> str:
    """Return a filled template."""
    return environment().get_template(template).render(**values)


async def asset(request: Request) -> Response:
    """Serve one of the console's own files."""
    name = request.path_params["name"]
    if name not in ASSETS:
        return Response("no such file\n", 404, media_type="text/plain")
    path = ASSETS[name]
    return Response(path.read_bytes(), media_type=_TYPES[path.suffix])
