"""The page that people read: for a data-protection officer first, then for a data scientist."""

from colonnade.report.client_sections import clients_section
from colonnade.report.cost_sections import Plots, bounds_bought, privacy_section, promised
from colonnade.report.glossary_section import words_section
from colonnade.report.markup import (
    Markup,
    at_most,
    join,
    name_of,
    number,
    short,
    size,
    tag,
)
from colonnade.report.model_sections import model_section, quality_section
from colonnade.report.moment_sections import moments_section
from colonnade.report.plots import draw_plots
from colonnade.report.schema import JobSpend, Report, is_over_clients
from colonnade.report.settings_section import settings_section
from colonnade.report.style import CSS
from colonnade.report.uplink_sections import uplink_section

NO_PLOTS = "Plots need Matplotlib: pip install matplotlib, then write the report again."

_MAX_TILES = 4
_STATES = {
    "finished": "finished",
    "failed": "failed",
    "cancelled": "cancelled",
    "running": "running",
    "proposed": "proposed, not started",
}


def page(title: str, *sections: Markup) -> str:
    """Return a page of ours that needs nothing but itself."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Markup(CSS)),
    )
    body = tag("body", tag("main", *sections))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def render(report: Report) -> str:
    """Return the whole page; it needs nothing but itself."""
    report = _in_order(report)
    drawn = draw_plots(report)
    plots: Plots = drawn or {}
    return page(
        f"{report['name']}: Colonnade report",
        _warnings(report),
        _headline(report),
        *(
            tag("p", tag("strong", "Note: "), each["note"], class_="note")
            for each in report["unused"]
        ),
        Markup() if drawn is not None else tag("p", NO_PLOTS, class_="note"),
        privacy_section(report, plots),
        clients_section(report, plots),
        uplink_section(report, plots),
        model_section(report, plots),
        moments_section(report, plots),
        quality_section(report, plots),
        settings_section(report),
        words_section(report),
    )


def _in_order(report: Report) -> Report:
    """Return the report with its parties in the same order everywhere: uplink is by name."""
    places = {party["party"]: place for place, party in enumerate(report["privacy"]["parties"])}
    uplink = report["uplink"].copy()
    uplink["rows"] = sorted(
        uplink["rows"], key=lambda row: (row["round"], places.get(row["party"], len(places)))
    )
    ordered = report.copy()
    ordered["uplink"] = uplink
    return ordered


def _warnings(report: Report) -> Markup:
    if report["private"]:
        return Markup()
    return tag(
        "div",
        tag("strong", "NOT PRIVATE"),
        tag(
            "p",
            (
                "This is a simulation whose noise is not exact and secret. The amounts below are"
                " what the same job would cost; nothing here protects anybody."
            ),
        ),
        class_="alarm",
        role="alert",
    )


def _headline(report: Report) -> Markup:
    privacy, state = report["privacy"], report["state"]
    failure = Markup()
    if report["reason"] or state in ("failed", "cancelled"):
        failure = tag(
            "p",
            tag("strong", f"{_STATES[state].capitalize()}: "),
            report["reason"] or "no reason was given",
            class_="failure" if state in ("failed", "cancelled") else "muted",
        )
    return tag(
        "header",
        tag(
            "h1",
            name_of(report["name"]),
            tag("span", _STATES[state], class_=f"badge {state}"),
        ),
        tag("p", "job ", tag("code", report["job_id"]), class_="muted"),
        failure,
        tag("p", *_unless_private(report), privacy["statement"], class_="promise"),
        _tiles(report),
    )


def _unless_private(report: Report) -> list[Markup]:
    if report["private"]:
        return []
    return [tag("strong", "Not true of this run, only of the same job with real noise: ")]


def _tiles(report: Report) -> Markup:
    privacy, rounds = report["privacy"], report["rounds"]
    joint, parties = privacy["joint"], privacy["parties"]
    over_clients = is_over_clients(report)
    whom = "each client, for all its rows" if over_clients else "a person at every party"
    bought = bounds_bought(privacy)
    tiles = [_promise(joint, f"promised to {whom}{', bounds included' if bought else ''}")]
    if bought and joint["bounds"] is not None:
        most, paid = joint["max"]["epsilon"], joint["bounds"]["epsilon"]
        text = f"of it jointly for bounds; the job alone {at_most(most)}"
        tiles.append((number(paid, f"ε ≤ {at_most(paid)}"), text))
    if over_clients:  # each client is at one party, and all are promised the same
        tiles += _answer_tiles(report)
    elif len(parties) <= _MAX_TILES:
        tiles += [_promise(party, join(["at ", name_of(party["party"])])) for party in parties]
    else:
        widest = max(parties, key=lambda party: promised(party)["max"]["units"])
        tiles.append(_promise(widest, f"at one party, the most of {len(parties)}"))
    tiles += [
        (number(privacy["delta"], f"δ = {short(privacy['delta'], 3)}"), "at which each ε holds"),
        (
            number(report["uplink"]["payload_bytes"], size(report["uplink"]["payload_bytes"])),
            "left the parties",
        ),
        (
            join([number(rounds["done"]), " of ", number(rounds["planned"])]),
            "rounds done",
        ),
        (number(report["n_clients"]), "clients")
        if over_clients
        else (number(report["n_rows"]), "rows (people)"),
    ]
    items = [tag("li", tag("b", figure), tag("span", text)) for figure, text in tiles]
    return tag("ul", *items, class_="tiles")


def _answer_tiles(report: Report) -> list[tuple[str, str]]:
    if "clients" not in report:
        return []
    clients = report["clients"]
    least = min((each["answers"] for each in clients["rounds"] if each["done"]), default=0)
    need = f"answers in the round that had fewest; each needs {clients['minimum']:,d}"
    return [(number(least), need)] if least else []


def _promise(spend: JobSpend, whom: str) -> tuple[str, str]:
    total = promised(spend)
    most, spent = total["max"]["epsilon"], total["spent"]["epsilon"]
    return number(most, f"ε ≤ {at_most(most)}"), join([whom, f"; spent {short(spent, 3)}"])
