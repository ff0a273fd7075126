"""The part of a fit's page that says what it was told to do, in words."""

from collections.abc import Mapping
from typing import Any

from colonnade.report.markup import Markup, number, table, tag

_SOLVERS = {
    "cd": "coordinate descent",
    "gcd": "greedy coordinate descent",
    "sgd": "stochastic gradient descent",
    "frank_wolfe": "Frank-Wolfe",
    "admm": "ADMM over the rows",
    "dual": "dual coordinate descent",
}


def settings_section(report: Mapping[str, Any]) -> Markup:
    """Return what the fit was told to do."""
    penalty = report["penalty"]
    strengths = [
        ("l1 penalty", number(penalty["l1"])),
        ("l2 penalty", number(penalty["l2"])),
        ("box", "none" if penalty["box"] is None else number(penalty["box"])),
    ]
    if "name" in penalty:  # a registered one
        strengths = [(f"{_words(penalty['name'])} penalty", number(penalty["strength"]))]
    rows = [
        ("solver", _SOLVERS.get(report["privacy"]["solver"], report["privacy"]["solver"])),
        *((f"its {_words(name)}", _setting(value)) for name, value in report["settings"].items()),
        ("loss", report["loss"]),
        *strengths,
        ("intercept", "yes" if report["intercept"] else "no"),
        ("noise", "exact and secret" if report["privacy"]["private"] else "not private"),
    ]
    return tag(
        "section",
        tag("h2", "The fit"),
        table(("setting", "value"), rows, texts=2),
        tag("p", "The same numbers for programs: report.json and model.json.", class_="note"),
    )


def _words(name: str) -> str:
    return name.replace("_", " ")


def _setting(value: Any) -> str:
    """Return a solver's setting in words."""
    if value is None:
        return "by default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    return _words(value) if isinstance(value, str) else "given"
