"""The section of a job over clients: what each one's account enforces, beside what a model says."""

from typing import TYPE_CHECKING

from colonnade.report.axes import legend, set_rounds
from colonnade.report.cost_sections import Plots, figures, folded_lines
from colonnade.report.markup import Markup, folded, name_of, number, short, table, tag
from colonnade.report.schema import Clients, Report
from colonnade.report.svg import MUTED, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_LINES = 200
_CURVES = (
    ("local_max_epsilon", "enforced, most", "#3b7dd8", "-"),
    ("local_median_epsilon", "enforced, median", "#2f9e6e", "-"),
    ("central_epsilon", "model-based, central", MUTED, (0, (4, 3))),
)


def clients_section(report: Report, plots: Plots) -> Markup:
    """Say what clients spent, and what the published models alone would reveal."""
    clients = report.get("clients")
    if clients is None:
        return Markup()
    local, central = clients["local"], clients["central"]
    epsilon = central["epsilon"]
    rows = [
        ("promised to every client, at most", number(local["promised"]["epsilon"]), "enforced"),
        ("spent by the client that paid most", number(local["max"]["epsilon"]), "enforced"),
        ("spent by the median client", number(local["median"]["epsilon"]), "enforced"),
        (
            "the published models alone",
            "–" if epsilon is None else number(epsilon),
            "model-based, not enforced",
        ),
    ]
    return tag(
        "section",
        tag("h2", "Clients: what each one pays"),
        tag(
            "p",
            number(clients["count"]),
            " clients, each with an account of its own that protects all its rows; ",
            number(clients["answers"]),
            " answers of ",
            number(clients["body_bytes"]),
            " bytes each; ",
            number(clients["declined"]),
            " declined to go on.",
            class_="muted",
        ),
        tag("p", shortfall(clients, rounds=report["rounds"]["planned"])),
        table(("epsilon", "value", "by whom"), rows, texts=1),
        figures(
            plots,
            {
                "clients": (
                    "Epsilon up to each round",
                    (
                        "Full lines: what clients' accounts enforce, whatever anybody does. "
                        "Dashed: a model of an honest coordinator; see its premises."
                    ),
                )
            },
        ),
        tag("p", "The model-based figure holds only if all of this is true, and nobody checks it:"),
        tag("ul", *(tag("li", premise) for premise in central["premises"])),
        *([tag("p", central["note"], class_="note")] if central["note"] else []),
        _by_round(clients),
        _by_client(clients),
    )


def shortfall(clients: Clients, *, rounds: int) -> str:
    """Say how many answers came against how many were meant to, and why not all did."""
    counts, meant = clients["rounds"], rounds * clients["sampled"]
    if not counts:
        return "No client was asked."
    fewer = [each for each in counts if each["asked"] < clients["sampled"]]
    drawings = sum(each["drawings"] for each in counts)
    said = [f"Every round needs at least {clients['minimum']:,d} answers."]
    if clients["answers"] < meant:
        said.append(
            f"{meant - clients['answers']:,d} fewer than the {meant:,d} answers of"
            f" {rounds:,d} rounds with {clients['sampled']:,d} clients each."
        )
    if fewer and clients["at_limit"]:
        said.append(
            f"{clients['at_limit']:,d} clients were at their limit ({clients['limit']:,d} answers"
            f" each), so not as many as planned could be drawn in {_rounds(len(fewer))}."
        )
    if drawings > len(counts):
        said.append(f"Further drawings for clients that were away: {drawings - len(counts):,d}.")
    if clients["unused"]:
        said.append(
            f"{clients['unused']:,d} answers of the unfinished round were paid for and have not"
            " moved the model."
        )
    return " ".join(said)


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count:,d} rounds"


def _by_round(clients: Clients) -> Markup:
    lines = [
        (
            number(each["round"]),
            number(each["answers"]),
            number(clients["minimum"]),
            number(each["asked"]),
            number(each["drawings"]),
            "yes" if each["done"] else "no",
        )
        for each in clients["rounds"]
    ]
    head = ("round", "answers", "minimum", "clients asked", "drawings", "done")
    return folded_lines("Answers of each round against the minimum", head, lines, texts=0)


def _by_client(clients: Clients) -> Markup:
    lines = [
        (name_of(party), number(client), number(count), number(count * clients["body_bytes"]))
        for party, counts in clients["answers_by_client"].items()
        for client, count in enumerate(counts)
    ]
    more = len(lines) - _MAX_LINES
    note = [tag("p", f"{more:,d} more are in report.json.", class_="note")] if more > 0 else []
    head = ("party", "client", "answers", "payload bytes")
    secret = tag(
        "p",
        "How often each client was drawn is for those who run the job: the model-based figure is"
        " about readers who see the models and not this table.",
        class_="note",
    )
    shown = table(head, lines[:_MAX_LINES], texts=1)
    return folded("Answers and bytes by client", shown, *note, secret)


def draw_clients(report: Report) -> Markup | None:
    """Draw both figures over the rounds."""
    clients = report.get("clients")
    if clients is None or len(clients["curves"]) < 2:
        return None
    curves = clients["curves"]

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        rounds = [int(point["round"] or 0) for point in curves]
        for key, name, colour, style in _CURVES:
            values = [float(value) for point in curves if (value := point[key]) is not None]
            if len(values) == len(rounds):
                label = f"{name}: {short(values[-1], 3)}"
                axes.plot(rounds, values, color=colour, linestyle=style, label=label)
        set_rounds(axes, range(rounds[-1] + 1))
        axes.set_ylim(bottom=0.0)
        axes.set_ylabel("epsilon")
        legend(figure, axes)

    label = "Epsilon up to each round: enforced by clients' accounts, and model-based"
    return draw(paint, key="clients", label=label, height=2.9)
