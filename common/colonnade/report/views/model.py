"""What matters: the effect of each column, exact coefficients, and how the model came about."""

from colonnade.report.parts import Block, Cell, Column, Filter, Fold, Row, Section, Table
from colonnade.report.plots import (
    MAX_NAMED,
    Curve,
    Scale,
    effect_strip,
    line_chart,
    zero_ticks,
)
from colonnade.report.schema import Model, Report
from colonnade.report.text import capital, in_words, of_all, per_unit, readable, signed
from colonnade.report.views.cells import MAX_LINES, NONE, colours, number, party_cell, plain_table
from colonnade.report.views.effects import (
    BEYOND,
    Effect,
    curves_of,
    effects_of,
    effects_scale,
    has_intervals,
    per_deviation,
)
from colonnade.report.views.statistics import statistics_of

MAX_CURVES = 40

CHANGES = {
    "squared": "change of the label, in its unit,",
    "logistic": "change of the log-odds",
    "hinge": "change of the score, whose sign is the class,",
}
_SCALED = (
    "Scaled: on values clipped to [low, high] and brought to [-1, 1], so what a move from the"
    " middle to an end of the bounds does"
)


def model_loss(report: Report) -> str:
    """Return the loss that says what a score means: a registered one may stand for it."""
    return report.loss if report.model is None else report.model.loss


def shows_parties(report: Report) -> bool:
    """Return whether columns belong to different parties."""
    return report.fit is None and not report.over_clients


def model_section(report: Report) -> Section:
    """Show the effects, the largest first."""
    if report.model is None:
        lead = ("There is no model: no round was completed.",)
        return Section("model", "What matters", "What matters", lead)
    effects = effects_of(report)
    blocks: list[Block] = [_effects_table(report, report.model, effects)]
    blocks.append(
        Fold(
            "Exact coefficients, bounds and fills",
            (_exact_table(report, effects), _intercept(report.model)),
        )
    )
    blocks += path_blocks(report)
    return Section(
        "model", "What matters", "What matters", (_lead(report, effects),), tuple(blocks)
    )


def _lead(report: Report, effects: list[Effect]) -> str:
    clear, total = [each for each in effects if each.clear], len(effects)
    if has_intervals(report):
        what = "an effect that is clear of zero"
        told = f"{capital(of_all(len(clear), total))} {_have(len(clear))} {what}."
    else:
        what = "a coefficient in the model"
        used = sum(bool(each.feature.coef_scaled) for each in effects)
        told = f"{capital(of_all(used, total))} {_have(used)} {what}."
        if report.fit is None and used:
            told += " Noise may have chosen some of them: this method knows no intervals."
        if hidden := _n_hidden(report):
            told += (
                f" The list shows the {len(clear):,d} whose sizes compare; noise hides how much the"
                f" values of the other {in_words(hidden)} vary."
            )
    if report.state != "finished":
        rounds = report.rounds
        told += f" This is the model so far, after {rounds.done} of {rounds.planned} rounds."
    return f"{told} These are associations, not causes."


def _have(number_: int) -> str:
    return "has" if number_ == 1 else "have"


def _scale_words(report: Report) -> str:
    """Describe what the effects count, and whether they compare."""
    changes = CHANGES[model_loss(report)]
    if has_intervals(report):
        return (
            "Change of the label, in standard deviations, when the column rises by one of its own,"
            " estimated without penalty. Bars are 95 % intervals, for rows and for privacy noise."
            " Intervals of simulated jobs cover 93 % or more of the coefficients, but not of every"
            " column alike."
            " The last columns are the model's own coefficients, which a penalty shrinks."
        )
    if per_deviation(report):
        return (
            f"{capital(changes)} for one standard deviation more of the column, so that sizes"
            " compare between columns. Deviations are those of clipped values, as releases tell"
            f" them, with their noise.{_hidden(report)}"
        )
    return (
        f"{_SCALED}. No deviations of columns were released, so sizes compare only between columns"
        " whose values fill their bounds alike."
    )


def _n_hidden(report: Report) -> int:
    """Return how many columns have a coefficient, but a deviation that noise hides."""
    effects = effects_of(report)
    return sum(each.size is None and bool(each.feature.coef_scaled) for each in effects)


def _hidden(report: Report) -> str:
    hidden = _n_hidden(report)
    return f" Noise hides the deviation of {hidden:,d} more." if hidden else ""


def _effects_table(report: Report, model: Model, effects: list[Effect]) -> Table:
    apart, intervals = shows_parties(report), has_intervals(report)
    label = readable(model.label.name)
    scale, beyond = effects_scale(effects)
    unclear = sum(not each.clear for each in effects)
    columns = [Column("column", number=False)]
    columns += [Column("held by", number=False)] if apart else []
    columns.append(Column("effect around zero", plot=True, ticks=zero_ticks(scale)))
    columns.append(Column("effect"))
    columns += [Column("95 % interval")] if intervals else []
    columns += (
        [Column("in the model, per deviation")] if intervals and per_deviation(report) else []
    )
    columns.append(
        Column(f"{label}, one more unit" if model.loss == "squared" else "one more unit")
    )
    rows = [_effect_row(report, each, scale) for each in effects[:MAX_LINES]]
    more = len(effects) - len(rows)
    hidden = (
        f"Show the {unclear:,d} that cannot be told from zero"
        if intervals
        else _others_shown(report, unclear)
    )
    parties = tuple(report.parties) if apart and len(report.parties) > 1 else ()
    return Table(
        "coefficients",
        f"Effect of each column on {label}",
        tuple(columns),
        tuple(rows),
        about=_scale_words(report) + (BEYOND if beyond else ""),
        layout="stack pair" if apart else "stack",
        filter=Filter(parties, hidden if unclear else "") if parties or unclear else None,
        sorted_by=3 if apart else 2,
        more=f"{more:,d} more are in model.json." if more > 0 else "",
    )


def _others_shown(report: Report, unclear: int) -> str:
    """Return what the list shows besides, on request."""
    hidden = _n_hidden(report)
    without = f"the {unclear - hidden:,d} without a coefficient"
    if not hidden:
        return f"Show {without}"
    varies = f"the {hidden:,d} whose deviation noise hides"
    return f"Show {without} and {varies}" if unclear > hidden else f"Show {varies}"


def _effect_row(report: Report, effect: Effect, scale: Scale) -> Row:
    feature, apart = effect.feature, shows_parties(report)
    colour = colours(report).get(feature.party, "ink") if apart else "ink"
    cells = [Cell(feature.name)]
    cells += [party_cell(report, feature.party)] if apart else []
    if effect.size is None:
        cells += [NONE, NONE]
    else:
        told = signed(effect.size)
        if effect.ends is not None:
            told += f", between {signed(effect.ends[0])} and {signed(effect.ends[1])}"
        label = f"{feature.name}: {told}"
        strip = effect_strip(scale, effect.size, effect.ends, colour=colour, label=label)
        cells += [Cell(strip=strip), Cell(signed(effect.size), effect.size)]
    if has_intervals(report):
        ends = effect.ends
        cells.append(
            NONE
            if ends is None
            else Cell(f"{signed(ends[0], 2)} to {signed(ends[1], 2)}", f"{ends[0]!r} {ends[1]!r}")
        )
        if per_deviation(report):
            value = effect.per_deviation
            cells.append(NONE if value is None else Cell(signed(value), value))
    cells.append(Cell(per_unit(feature.coef), feature.coef))
    return Row(tuple(cells), party=feature.party, clear=effect.clear)


def category_lines(report: Report) -> list[str]:
    """Return a sentence for each category: its levels, and what they are compared with."""
    if report.model is None:
        return []
    lines = []
    for each in report.model.encodings:
        if each.kind.get("type") == "category":
            other, baseline = each.kind.get("other"), each.kind.get("baseline")
            levels = [*each.kind["levels"], *([other] if other else [])]
            shown = ", ".join(level for level in levels if level != baseline)
            against = f"compared with {baseline}" if baseline else "none of them left out"
            lines.append(f"{each.name} is one column of texts, with the levels {shown}; {against}.")
    if classes := report.model.label.levels:
        lines.append(f"{report.model.label.name} is {classes[1]} at its high value.")
    return lines


def _exact_table(report: Report, effects: list[Effect]) -> Table:
    apart, per = shows_parties(report), per_deviation(report)
    found = statistics_of(report)
    head = ["column", *(["held by"] if apart else []), "in the column's unit", "scaled"]
    head += ["per deviation", "deviation"] if per else []
    head += [*found.head, "low", "high", "if missing"]
    lines = []
    for each in effects:
        feature = each.feature
        cells = [Cell(feature.name)]
        cells += [party_cell(report, feature.party)] if apart else []
        cells += [number(feature.coef), number(feature.coef_scaled)]
        cells += [number(each.per_deviation), number(each.deviation)] if per else []
        cells += found.cells(feature.party, feature.name)
        cells += [number(feature.low), number(feature.high), number(feature.fill)]
        lines.append(cells)
    unit = f"In the column's unit: {CHANGES[model_loss(report)]} for one unit more."
    categories = "".join(f" {line}" for line in category_lines(report))
    return plain_table(
        "model-table",
        "The model's coefficients",
        head,
        lines,
        texts=2 if apart else 1,
        about=f"{unit} {_SCALED}.{found.about}{categories}",
    )


def _intercept(model: Model) -> Table:
    cells = [
        Cell("intercept"),
        number(model.intercept),
        number(model.intercept_scaled),
        number(model.label.low),
        number(model.label.high),
    ]
    head = ("", "in the label's unit", "scaled", "label's low", "label's high")
    return plain_table("intercept", "Intercept", head, [cells])


def path_blocks(report: Report) -> list[Block]:
    """Return how the coefficients came about, round by round."""
    curves = curves_of(report)[:MAX_CURVES]
    if not curves or len(report.path) < 2:
        return []
    party = colours(report)
    apart = shows_parties(report) and len(report.parties) > 1
    drawn = [
        Curve(
            curve.name,
            party.get(curve.party, "0") if apart else "ink",
            curve.values,
            "" if place < MAX_NAMED and curve.values[-1] else "thin",
        )
        for place, curve in enumerate(curves)
    ]
    scale = "per deviation" if per_deviation(report) else "on scaled values"
    more = len(curves_of(report)) - len(curves)
    caption = f"After each round, {scale}. Named: the largest at the end. Thin: others."
    if more > 0:
        caption += f" {more:,d} smaller ones are not drawn."
    table = plain_table(
        "path",
        f"Coefficients after each round, {scale}",
        ("round", *(f"{c.party}: {c.name}" if apart else c.name for c in curves)),
        [
            [number(point.round), *(number(curve.values[place]) for curve in curves)]
            for place, point in enumerate(report.path)
        ][: max(1, 10 * MAX_LINES // len(curves))],
    )
    chart = line_chart(
        "path-plot",
        [point.round for point in report.path],
        drawn,
        title="How the model came about",
        label=f"Coefficients after each round, {scale}",
        caption=caption,
        axes=("round", f"coefficient, {scale}"),
        table=table,
    )
    return [chart]
