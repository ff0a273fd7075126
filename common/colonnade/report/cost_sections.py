"""The section of what was promised and what it cost."""

from collections.abc import Mapping, Sequence

from colonnade.privacy.accounting import RHO_UNIT
from colonnade.report.markup import (
    Markup,
    at_most,
    folded,
    join,
    name_of,
    number,
    table,
    tag,
)
from colonnade.report.schema import Amount, JobSpend, Privacy, Report, Spend, is_over_clients

Plots = Mapping[str, Markup]

MAX_LINES = 400
"""Lines of a folded table; the rest is in ``report.json``."""

_MAX_OPEN = 16  # lines of a table that is not folded away


def promised(spend: JobSpend) -> Spend:
    """Return what a promise covers: bounds and job; the job alone if bounds are not known."""
    return spend if spend["total"] is None else spend["total"]


def bounds_bought(privacy: Privacy) -> bool:
    """Return whether a part of the total was paid for bounds, before the job."""
    return any(party["bounds"] and party["bounds"]["units"] for party in privacy["parties"])


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
    privacy, over_clients = report["privacy"], is_over_clients(report)
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
        Markup() if over_clients else _total_table(privacy),
        _spend_table(privacy, over_clients=over_clients),
        figures(
            plots,
            {
                "spend": (
                    "Spent by one client of each party" if over_clients else "Spent by each party",
                    (
                        f"Coloured: spent {'on bounds and ' if bounds_bought(privacy) else ''}in"
                        " this job. Upright line: the most that it may be. Grey: the"
                        f" {whose}'s cap, where it is known; one that reaches the edge goes on."
                    ),
                ),
                "rounds": (
                    "Spent up to each round",
                    "By the job, stacked by party; in rho, because rho adds up."
                    + (" Bounds were paid before." if bounds_bought(privacy) else ""),
                ),
            },
        ),
        _bought(privacy, over_clients=over_clients),
        _exact_amounts(privacy, over_clients=over_clients),
        _spend_by_round(privacy),
    )


def _bought(privacy: Privacy, *, over_clients: bool) -> Markup:
    of = " of one client" if over_clients else ""
    lines = [
        (
            name_of(party["party"]),
            "bounds, before the job",
            "–",
            number(party["bounds"]["rho"]),
            number(party["bounds"]["epsilon"]),
        )
        for party in privacy["parties"]
        if party["bounds"] and party["bounds"]["units"]
    ]
    lines += [
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
    return maybe_folded("What was bought", shown, n_lines=len(lines))


def _total_table(privacy: Privacy) -> Markup:
    """Show what is promised in all, and what of it bounds and the job account for."""

    def row(who: str, spend: JobSpend) -> tuple[str, ...]:
        total = None if spend["total"] is None else spend["total"]["max"]
        cells = [who]
        for amount in (total, spend["bounds"], spend["max"]):
            if amount is None:
                cells += ["–", "–"]
            else:
                shown = at_most(amount["epsilon"], 4)
                cells += [number(amount["epsilon"], shown), number(amount["rho"])]
        return tuple(cells)

    rows = [row(name_of(party["party"]), party) for party in privacy["parties"]]
    joint = row("joint: one person at every party", privacy["joint"])
    head = ["whose data"]
    for what in ("total", "for bounds", "job's maximum"):
        head += [f"{what}, epsilon", f"{what}, rho"]
    note = tag("p", "Bounds: ", privacy["bounds_note"], ".", class_="note")
    return join([table(head, [*rows, joint], strong=1), note])


def _spend_table(privacy: Privacy, *, over_clients: bool) -> Markup:
    rows = [
        _spend_row(
            join(["one client at ", name_of(party["party"])])
            if over_clients
            else name_of(party["party"]),
            party["max"],
            party["spent"],
            party["cap"],
            party["ledger_spent"],
        )
        for party in privacy["parties"]
    ]
    joint, label = privacy["joint"], privacy["label"]
    totals = [
        _spend_row("joint: one person at every party", joint["max"], joint["spent"], None, None),
        _spend_row("label", label["max"], label["spent"], None, None),
    ]
    note = f"Whose releases depend on the label: {label['who']}."
    if over_clients:  # a client is at one party, and its label is a column of its rows
        totals = []
        note = (
            "Amounts are those of the party's client that paid most; all of a client's rows, its"
            " labels among them, are protected together. Under the cap: what the coordinator knows"
            " one of the clients to have spent at least, in all jobs."
        )
    whose = "client" if over_clients else "party"
    known = "known to be spent" if over_clients else "spent"
    shown = table(
        (
            "whose data",
            "job's maximum, epsilon",
            "spent, epsilon",
            "spent of maximum (rho)",
            f"{whose}'s cap, epsilon",
            f"{known} under the cap, all jobs, epsilon",
        ),
        [*rows, *totals],
        strong=len(totals),
    )
    return join([shown, tag("p", note, class_="note")])


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


def _exact_amounts(privacy: Privacy, *, over_clients: bool) -> Markup:
    """List every amount in units, for those who recompute."""
    joint, label = privacy["joint"], privacy["label"]
    amounts: list[tuple[str, str, Amount | None]] = []
    name: str
    for party in privacy["parties"]:
        name, ledger = name_of(party["party"]), party["ledger_spent"]
        if over_clients:
            name = join(["one client at ", name])
        amounts += [
            (name, "job's maximum", party["max"]),
            (name, "spent in this job", party["spent"]),
            (name, "paid for bounds", party["bounds"]),
            *_totals(name, party),
            (name, "cap", party["cap"]),
            (name, f"{'known to be ' if over_clients else ''}spent under the cap", ledger),
        ]
        amounts += [
            (name, join(["spent on ", name_of(kind["kind"])]), kind["spent"])
            for kind in party["by_kind"]
        ]
    totals: list[tuple[str, JobSpend]] = [("joint", joint), ("label", label)]
    for name, spend in [] if over_clients else totals:
        amounts += [
            (name, "job's maximum", spend["max"]),
            (name, "spent in this job", spend["spent"]),
            (name, "paid for bounds", spend["bounds"]),
            *_totals(name, spend),
        ]
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


def _totals(name: str, spend: JobSpend) -> list[tuple[str, str, Amount | None]]:
    total = spend["total"]
    if total is None:
        return []
    return [
        (name, "total: bounds and job's maximum", total["max"]),
        (name, "total: spent on bounds and job", total["spent"]),
    ]


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
    return folded_lines("Spent in each round", head, lines, texts=2)


def maybe_folded(title: str, content: Markup, *, n_lines: int) -> Markup:
    """Show a short table under its title and fold a long one away."""
    if n_lines > _MAX_OPEN:
        return folded(title, content)
    return join([tag("h3", title), content]) if n_lines else Markup()


def folded_lines(
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
