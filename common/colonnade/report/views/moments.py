"""More from the releases of a moments job: the L1 path and correlations."""

import math

from colonnade.report.parts import Block, Cell, Grid, Note, Section
from colonnade.report.plots import MAX_NAMED, MAX_SQUARES, Curve, line_chart, matrix_chart
from colonnade.report.schema import Report
from colonnade.report.schema_parts import Moments
from colonnade.report.text import readable, short
from colonnade.report.views.cells import colours, number, plain_table
from colonnade.report.views.model import MAX_CURVES

NOT_BOUGHT = (
    "There are no intervals and no accuracy: at this budget and number of rows the job bought"
    " nothing about what columns of different parties have in common, so errors are unknown."
)


def moments_section(report: Report) -> Section | None:
    """Show what else follows from the same releases."""
    moments = report.moments
    if moments is None:
        return None
    lead = ["Computed from what was released, at no further cost, in standard deviations."]
    if moments.left_out:
        lead.append(
            f"{moments.left_out:,d} columns that have less to do with the label are left out."
        )
    charts: list[Block] = [_correlations(report, moments)]
    charts += _l1_path(report, moments)
    blocks: list[Block] = [Grid(tuple(charts))]
    if moments.intervals is None:
        blocks.insert(0, Note(NOT_BOUGHT, state="warn"))
    return Section("more", "More from the same releases", "More", tuple(lead), tuple(blocks))


def _l1_path(report: Report, moments: Moments) -> list[Block]:
    penalties, coefs = moments.path.penalties, moments.path.coefs
    order = sorted(range(len(moments.features)), key=lambda place: -abs(coefs[-1][place]))
    order = [place for place in order if any(row[place] for row in coefs)][:MAX_CURVES]
    if not order or len(penalties) < 2:
        return []
    party, this = colours(report), "this fit" if report.fit else "this job"
    features = moments.features
    curves = [
        Curve(
            features[place].name,
            party.get(features[place].party, "0"),
            [row[place] for row in coefs],
            "" if rank < MAX_NAMED else "thin",
        )
        for rank, place in enumerate(order)
    ]
    across = [-math.log10(penalty) for penalty in penalties]
    chosen = moments.path.chosen
    shown = across[0] <= -math.log10(chosen) <= across[-1] if chosen > 0.0 else False
    named = order[:MAX_NAMED]
    table = plain_table(
        "l1-path",
        f"The path of the largest {len(named)}",
        ("penalty", *(f"{features[place].party}: {features[place].name}" for place in named)),
        [
            [number(penalty), *(number(row[place]) for place in named)]
            for penalty, row in zip(penalties, coefs, strict=True)
        ],
    )
    ticks = [(each, short(10.0**-each, 1)) for each in _log_ticks(across)]
    chart = line_chart(
        "l1-path-plot",
        across,
        curves,
        title="Fewer or more columns",
        label="Coefficients as the L1 penalty falls",
        caption=f"Every L1 solution, from a strong penalty to a weak one. Upright: {this}'s.",
        axes=("penalty", "coefficient, in deviations"),
        x_ticks=ticks,
        markers=[(-math.log10(chosen), this)] if shown else [],
        table=table,
    )
    return [chart]


def _log_ticks(across: list[float]) -> list[float]:
    first, last = math.ceil(2 * across[0] - 1e-9), math.floor(2 * across[-1] + 1e-9)
    halves = [each / 2.0 for each in range(first, last + 1)]
    return [each for each in halves if each == int(each)] if len(halves) > 5 else halves


def _correlations(report: Report, moments: Moments) -> Block:
    """Show what goes together, of the columns that have most to do with the label."""
    last = len(moments.features)
    by_label = sorted(range(last), key=lambda place: -abs(moments.correlations[last][place]))
    kept = sorted(by_label[: MAX_SQUARES - 1])
    names = [moments.features[place].name for place in kept]
    label = readable(report.model.label.name) if report.model else "label"
    values = [[moments.correlations[a][b] for b in (*kept, last)] for a in (*kept, last)]
    between = "known through a few directions"
    if moments.intervals is None:
        between = "not bought: what is drawn is what the label alone would cause"
    more = last - len(kept)
    caption = (
        "Area: size. Filled: positive, hollow: negative. Last row: the label. Within an"
        f" organization correlations are known well; between organizations, {between}."
        " Rows far out are drawn in before they count, which takes up to a quarter of it."
    )
    if more > 0:
        caption += f" {more:,d} columns that have less to do with the label are not drawn."
    numbers = [f"{place + 1}" for place in range(len(names) + 1)]
    table = plain_table(
        "correlations",
        "Correlations",
        ("column", *numbers),
        [
            [Cell(f"{place + 1} {name}"), *(number(value, 2) for value in values[place])]
            for place, name in enumerate((*names, label))
        ],
    )
    return matrix_chart(
        "correlations-plot",
        (*names, label),
        values,
        title="What goes together",
        label=f"Correlations of {len(names)} columns and of the label",
        caption=caption,
        table=table,
    )
