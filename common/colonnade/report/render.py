"""Fill the templates: every value is escaped, and a value that is missing is an error."""

import base64
import functools
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from colonnade.report.parts import Page
from colonnade.report.prediction_page import prediction_page
from colonnade.report.schema import Report
from colonnade.report.text import clean
from colonnade.report.views.page import page_of

_HERE = Path(__file__).parent


def render(report: Report) -> str:
    """Return the page of a report."""
    found = report.prediction
    return render_page(page_of(report) if found is None else prediction_page(report, found))


def render_page(page: Page) -> str:
    """Return a whole page; it needs nothing but itself, and may fetch nothing."""
    style = _asset("tokens.css") + _asset("components.css") + _asset("report.css")
    script = _asset("ui.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}';"
        " base-uri 'none'; form-action 'none'"
    )
    template = _environment().get_template("page.html.j2")
    # Our own files, which are the same for every report.
    assets = {"style": Markup(style), "script": Markup(script)}  # noqa: S704
    return template.render(page=page, policy=policy, **assets)


@functools.cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )


def finalize(value: object) -> object:
    """Return what may stand in a page: text without characters that no document can hold."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@functools.cache
def _asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the hash by which a policy names an inline block."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
