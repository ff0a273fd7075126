"""The sections of what was promised, what it cost, and what left."""

from collections.abc import Mapping, Sequence

from colonnade.privacy.accounting import RHO_UNIT
from colonnade.server.report.markup import (
    Markup,
    at_most,
    folded,
    join,
    name_of,
    number,
    size,
    table,
    tag,
)
from colonnade.server.report.schema import Amount, Privacy, Report, Uplink, UplinkRow

Plots = Mapping[str, Markup]

MAX_LINES = 400
"""Lines of a folded table; the rest is in ``report.json``."""

_MAX_OPEN = 16  # lines of a table that is not folded away
_SIZES = ("payload_bytes", "predicted_bytes", "wire_bytes", "messages", "retry_bytes")


def figures(plots: Plots, captions: Mapping[str, tuple[str, str]]) -> Markup:
    """Lay out the plots that exist, each under its title."""
    shown = [
        tag("figure", tag("h3", title), plots[key], tag("figcaption", caption))
        for key, (title, caption) in captions.items()
        if key in plots
    ]
    return tag("div", *shown, class_="plots") if shown else Markup()


def privacy_section(report: Report, plots: Plots) -> Markup:
    """Say what is promised to whom and what of it was used."""
    privacy, over_clients = report["privacy"], "clients" in report
    whose = "client" if over_clients else "party"
    return tag(
        "section",
        tag("h2", "Privacy: what is promised, what was spent"),
        tag(
            "p",
            "The maximum of a job is what its parties agreed to and what it promises; what was"
            f" spent is a reading below it. A {whose}'s cap covers all it ever sends, in every job."
            " All epsilons are at delta = ",
            number(privacy["delta"]),
            f". Rho adds up over {'' if over_clients else 'parties and '}rounds; epsilon does not.",
            class_="muted",
        ),
        _spend_table(privacy, over_clients=over_clients),
        figures(
            plots,
            {
                "spend": (
                    "Spent by one client of each party" if over_clients else "Spent by each party",
                    (
                        "Coloured: spent in this job. Upright line: the job's maximum. Grey: the"
                        f" {whose}'s cap, where it is known; one that reaches the edge goes on."
                    ),
                ),
                "rounds": (
                    "Spent up to each round",
                    "Stacked by party; in rho, because rho adds up.",
                ),
            },
        ),
        _bought(privacy, over_clients=over_clients),
        _exact_amounts(privacy),
        _spend_by_round(privacy),
    )


def _bought(privacy: Privacy, *, over_clients: bool) -> Markup:
    of = " of one client" if over_clients else ""
    lines = [
        (
            name_of(party["party"]),
            name_of(kind["kind"]),
            number(kind["releases"]),
            number(kind["spent"]["rho"]),
            number(kind["spent"]["epsilon"]),
        )
        for party in privacy["parties"]
        for kind in party["by_kind"]
    ]
    head = ("party", "kind of release", "releases", f"rho{of}", f"epsilon{of}")
    shown = table(head, lines, texts=2)
    return _maybe_folded("What was bought", shown, n_lines=len(lines))


def _spend_table(privacy: Privacy, *, over_clients: bool) -> Markup:
    whom = "any one client" if over_clients else "joint: one person at every party"
    prefix = "one client at " if over_clients else ""
    rows = [
        _spend_row(
            join([prefix, name_of(party["party"])]),
            party["max"],
            party["spent"],
            party["cap"],
            party["ledger_spent"],
        )
        for party in privacy["parties"]
    ]
    joint, label = privacy["joint"], privacy["label"]
    rows.append(_spend_row(whom, joint["max"], joint["spent"], None, None))
    rows.append(_spend_row("label", label["max"], label["spent"], None, None))
    shown = table(
        (
            "whose data",
            "job's maximum, epsilon",
            "spent, epsilon",
            "spent of maximum (rho)",
            f"{'client' if over_clients else 'party'}'s cap, epsilon",
            "spent under the cap, all jobs, epsilon",
        ),
        rows,
        strong=2,
    )
    return join(
        [shown, tag("p", f"Whose releases depend on the label: {label['who']}.", class_="note")]
    )


def _spend_row(
    who: str, most: Amount, spent: Amount, cap: Amount | None, ledger: Amount | None
) -> tuple[str, ...]:
    share = f"{100.0 * spent['units'] / most['units']:.1f} %" if most["units"] else "–"
    return (
        who,
        number(most["epsilon"], at_most(most["epsilon"], 4)),
        number(spent["epsilon"]),
        share,
        "–" if cap is None else number(cap["epsilon"], at_most(cap["epsilon"], 4)),
        "–" if ledger is None else number(ledger["epsilon"]),
    )


def _exact_amounts(privacy: Privacy) -> Markup:
    """List every amount in units, for those who recompute."""
    joint, label = privacy["joint"], privacy["label"]
    amounts: list[tuple[str, str, Amount | None]] = []
    name: str
    for party in privacy["parties"]:
        name = name_of(party["party"])
        amounts += [
            (name, "job's maximum", party["max"]),
            (name, "spent in this job", party["spent"]),
            (name, "cap", party["cap"]),
            (name, "spent under the cap", party["ledger_spent"]),
        ]
        amounts += [
            (name, join(["spent on ", name_of(kind["kind"])]), kind["spent"])
            for kind in party["by_kind"]
        ]
    for name, most, spent in (
        ("joint", joint["max"], joint["spent"]),
        ("label", label["max"], label["spent"]),
    ):
        amounts += [(name, "job's maximum", most), (name, "spent in this job", spent)]
    return folded(
        "Exact amounts, for an auditor (one unit is rho 2^-50)",
        table(
            ("whose data", "amount", "units", "rho", "epsilon"),
            [
                (
                    who,
                    what,
                    number(amount["units"]),
                    number(amount["rho"]),
                    number(amount["epsilon"]),
                )
                for who, what, amount in amounts
                if amount is not None
            ],
            texts=2,
        ),
    )


def _spend_by_round(privacy: Privacy) -> Markup:
    lines = [
        (
            number(row["round"]),
            name_of(party),
            number(units),
            number(units / RHO_UNIT),
        )
        for row in privacy["by_round"]
        for party, units in row["spent"].items()
    ]
    head = ("round", "party", "units", "rho")
    return _folded_lines("Spent in each round", head, lines, texts=2)


def uplink_section(report: Report, plots: Plots) -> Markup:
    """Say what left the parties, in bytes."""
    uplink = report["uplink"]
    parties = list(dict.fromkeys(row["party"] for row in uplink["rows"]))
    kinds = list(dict.fromkeys(row["kind"] for row in uplink["rows"]))
    rows = [
        (name_of(party), name_of(kind), *_sums(chosen))
        for party in parties
        for kind in kinds
        if (chosen := [r for r in uplink["rows"] if (r["party"], r["kind"]) == (party, kind)])
    ]
    total = (
        "all parties",
        "all kinds",
        number(uplink["payload_bytes"]),
        number(uplink["predicted_bytes"]),
        number(uplink["wire_bytes"]),
        number(sum(row["messages"] for row in uplink["rows"])),
        number(uplink["retry_bytes"]),
    )
    sizes = ("payload, bytes", "predicted", "on the wire", "messages", "sent again")
    return tag(
        "section",
        tag("h2", "Uplink: what left the parties"),
        tag("p", _sentence(uplink)),
        tag(
            "p",
            "Payload: the noisy releases themselves, whose size is known before the job starts. On"
            " the wire: with addressing and encryption. Sent again: repeats of the same bytes after"
            " a broken connection; a repeat tells nothing new and costs no privacy.",
            class_="muted",
        ),
        figures(
            plots,
            {
                "uplink": ("By party and kind", "Upright line: predicted before the job."),
                "traffic": ("By round", "All parties. Outline: predicted before the job."),
            },
        ),
        _maybe_folded(
            "Bytes of each party and kind",
            table(("party", "kind", *sizes), [*rows, total], texts=2, strong=1),
            n_lines=len(rows),
        ),
        _folded_lines(
            "Bytes of each round, party and kind",
            ("round", "party", "kind", *sizes),
            [
                (
                    number(row["round"]),
                    name_of(row["party"]),
                    name_of(row["kind"]),
                    *_sums([row]),
                )
                for row in uplink["rows"]
            ],
            texts=3,
        ),
    )


def _sentence(uplink: Uplink) -> Markup:
    payload, predicted = uplink["payload_bytes"], uplink["predicted_bytes"]
    if not payload:
        return join(["Nothing left the parties."])
    verdict = (
        "exactly as predicted."
        if payload == predicted
        else f"where {size(predicted)} were predicted."
    )
    again = f" {size(uplink['retry_bytes'])} were sent again." if uplink["retry_bytes"] else ""
    return join([f"{size(payload)} of releases left the parties, {verdict}{again}"])


def _sums(rows: Sequence[UplinkRow]) -> tuple[Markup, ...]:
    sums = dict.fromkeys(_SIZES, 0)
    for row in rows:
        sums["payload_bytes"] += row["payload_bytes"]
        sums["predicted_bytes"] += row["predicted_bytes"]
        sums["wire_bytes"] += row["wire_bytes"]
        sums["messages"] += row["messages"]
        sums["retry_bytes"] += row["retry_bytes"]
    return tuple(number(sums[key]) for key in _SIZES)


def _maybe_folded(title: str, content: Markup, *, n_lines: int) -> Markup:
    if n_lines > _MAX_OPEN:
        return folded(title, content)
    return join([tag("h3", title), content]) if n_lines else Markup()


def _folded_lines(
    summary: str, head: Sequence[str], lines: Sequence[Sequence[str]], *, texts: int
) -> Markup:
    """Fold a long table away; what is beyond its limit is in the other file."""
    if not lines:
        return Markup()
    more = len(lines) - MAX_LINES
    note = (
        [tag("p", f"{more:,d} more lines are in report.json.", class_="note")] if more > 0 else []
    )
    return folded(summary, table(head, lines[:MAX_LINES], texts=texts), *note)
