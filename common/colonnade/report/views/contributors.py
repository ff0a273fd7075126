"""Who contributed: what each organization's columns add to the model."""

from colonnade.report.parts import Cell, Column, Note, Row, Section, Table
from colonnade.report.plots import share_strip
from colonnade.report.schema import Report
from colonnade.report.schema_parts import Contribution
from colonnade.report.text import NORMAL_95, capital, listed
from colonnade.report.views.cells import NONE, colours, number, party_cell
from colonnade.report.views.effects import Effect, effects_of, has_intervals
from colonnade.report.views.quality import accuracy_of


def idle_parties(report: Report) -> list[str]:
    """Return the parties with columns of which none has a coefficient."""
    used: dict[str, bool] = {}
    for effect in effects_of(report):
        party = effect.feature.party
        used[party] = used.get(party, False) or bool(effect.feature.coef_scaled)
    return [party for party, any_ in used.items() if not any_]


def idle_notes(report: Report) -> tuple[Note, ...]:
    """Name, above all figures, each party that paid for a model which uses none of its columns."""
    return tuple(
        Note(
            capital(f"{each.note}."),
            f"The columns of {each.party} add nothing to this model",
            "warn",
        )
        for each in report.unused
    )


def contributors_section(report: Report) -> Section | None:
    """Show what each organization adds, as far as the job tells."""
    effects = effects_of(report)
    if len(report.parties) < 2 or not effects:
        return None
    rows = [_row(report, party, effects) for party in report.parties]
    columns = [Column("organization", number=False)]
    about = "Bar: the share of an organization's columns that have a coefficient in the model."
    if report.contribution:
        columns += [Column("from 0 to 100 percent", plot=True), Column("alone explains")]
        columns.append(Column("lost without it"))
        about = (
            "Share of the differences between people that a model explains, from this job's"
            " releases, at no further cost. Every ± is a 95 % interval."
        )
        rows.insert(0, _whole_row(report, effects))
    else:
        columns.append(Column("in the model, of its columns", plot=True))
    columns += [Column("columns"), Column("in the model")]
    columns += [Column("clear of zero")] if has_intervals(report) else []
    table = Table(
        "contribution", "What each organization adds", tuple(columns), tuple(rows), about=about
    )
    return Section("who", "Who contributed", "Who contributed", (_lead(report),), (table,))


def _lead(report: Report) -> str:
    idle = idle_parties(report)
    if idle:
        return f"No column of {listed(idle)} has a coefficient in this model."
    return "Every organization has columns with a coefficient in this model."


def _counts(report: Report, effects: list[Effect]) -> list[Cell]:
    used = sum(bool(each.feature.coef_scaled) for each in effects)
    cells = [number(len(effects)), number(used)]
    if has_intervals(report):
        cells.append(number(sum(each.clear for each in effects)))
    return cells


def _row(report: Report, party: str, effects: list[Effect]) -> Row:
    own = [each for each in effects if each.feature.party == party]
    cells = [party_cell(report, party)]
    if report.contribution:
        found = report.contribution.get(party)
        cells += [NONE] * 3 if found is None else _shares(report, party, found)
    else:
        used = sum(bool(each.feature.coef_scaled) for each in own)
        label = f"{used} of {len(own)} columns of {party} are in the model"
        share = used / len(own) if own else 0.0
        cells.append(
            Cell(strip=share_strip(share, None, colour=colours(report)[party], label=label))
        )
    return Row((*cells, *_counts(report, own)), party=party)


def _shares(report: Report, party: str, found: Contribution) -> list[Cell]:
    whole = accuracy_of(report)
    error = None if found.alone_error is None else NORMAL_95 * found.alone_error
    aside = "" if error is None else f"± {100 * error:.0f}"
    label = f"{party} alone: {100 * found.alone:.0f} percent"
    lost = NONE
    if whole is not None:
        points = whole.value - found.without
        lost = Cell(f"{100 * points:.0f} points", points)
    return [
        Cell(strip=share_strip(found.alone, error, colour=colours(report)[party], label=label)),
        Cell(f"{100 * found.alone:.0f} %", found.alone, aside=aside),
        lost,
    ]


def _whole_row(report: Report, effects: list[Effect]) -> Row:
    whole = accuracy_of(report)
    if whole is None:
        return Row((Cell("all together"), NONE, NONE, NONE, *_counts(report, effects)))
    label = f"all together: {100 * whole.value:.0f} percent"
    strip = share_strip(whole.value, whole.error, colour="ink", label=label)
    told = Cell(f"{100 * whole.value:.0f} %", whole.value, aside=f"± {100 * whole.error:.0f}")
    return Row((Cell("all together"), Cell(strip=strip), told, NONE, *_counts(report, effects)))
