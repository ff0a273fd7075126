"""Who contributed: what each organization's columns add to the model."""

from collections.abc import Mapping
from dataclasses import replace

from colonnade.report.parts import Cell, Column, Note, Row, Section, Table
from colonnade.report.plots import share_strip
from colonnade.report.schema import Report
from colonnade.report.schema_results import Contribution
from colonnade.report.text import NORMAL_95, capital, listed
from colonnade.report.views.cells import NONE, colours, number, party_cell, plain_table
from colonnade.report.views.effects import Effect, effects_of, has_intervals
from colonnade.report.views.quality import accuracy_of

NOTHING_BETWEEN = (
    "What is lost without one is not known: at this budget and number of rows the job bought"
    " nothing about what the organizations' columns have in common."
)


def nothing_between(contribution: Mapping[str, Contribution]) -> bool:
    """Return whether nothing is known of what any two parties' columns have in common."""
    return len(contribution) > 1 and all(each.lost is None for each in contribution.values())


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
    """Show what each organization contributes, as estimated from the job's releases."""
    effects = effects_of(report)
    if len(report.parties) < 2 or not effects:
        return None
    rows = [_row(report, party, effects) for party in report.parties]
    columns = [Column("organization", number=False)]
    about = "Bar: the share of an organization's columns that have a coefficient in the model."
    if report.contribution:
        columns += [Column("from 0 to 100 percent", plot=True), Column("alone explains")]
        columns.append(Column("lost without it"))
        if _ranks(report):
            columns += [Column("AUC alone"), Column("AUC without it")]
        about = (
            "Share of the differences between people that a model explains, from this job's"
            " releases, at no further cost. Every ± is a 95 % interval."
        )
        if nothing_between(report.contribution):
            about += f" {NOTHING_BETWEEN}"
        rows.insert(0, _whole_row(report, effects))
    else:
        columns.append(Column("in the model, of its columns", plot=True))
    columns += [Column("columns"), Column("in the model")]
    columns += [Column("clear of zero")] if has_intervals(report) else []
    table = _known(
        Table(
            "contribution", "What each organization adds", tuple(columns), tuple(rows), about=about
        )
    )
    shown = (table, *_overlap(report))
    return Section("who", "Who contributed", "Who contributed", (_lead(report),), shown)


def _known(table: Table) -> Table:
    """Leave out the columns of which nothing is known in any row."""
    held = [
        place
        for place in range(len(table.columns))
        if any(row.cells[place] is not NONE for row in table.rows)
    ]
    rows = tuple(
        replace(row, cells=tuple(row.cells[place] for place in held)) for row in table.rows
    )
    return replace(table, columns=tuple(table.columns[place] for place in held), rows=rows)


def _overlap(report: Report) -> tuple[Table, ...]:
    """Show how many people each two organizations have in common, if an alignment counted them."""
    pairs = report.moments.overlap if report.moments else ()
    if not pairs:
        return ()
    return (
        plain_table(
            "overlap",
            "People in common",
            ("organizations", "people, about"),
            [(Cell(listed(list(each.parties))), number(each.people)) for each in pairs],
            about="In the fit, from the alignment's counts with noise. A product of columns of two"
            " organizations is a mean over the people whom both have.",
        ),
    )


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
        nothing = [NONE] * (5 if _ranks(report) else 3)
        cells += nothing if found is None else _shares(report, party, found)
    else:
        used = sum(bool(each.feature.coef_scaled) for each in own)
        label = f"{used} of {len(own)} columns of {party} are in the model"
        share = used / len(own) if own else 0.0
        cells.append(
            Cell(strip=share_strip(share, None, colour=colours(report)[party], label=label))
        )
    return Row((*cells, *_counts(report, own)), party=party)


def _ranks(report: Report) -> bool:
    """Return whether contributions are also given as AUC."""
    return any(each.alone_auc is not None for each in (report.contribution or {}).values())


def _whole(report: Report) -> tuple[float, float] | None:
    """Return the share that all explain together, and half a 95 % interval; None if not known."""
    explained = report.moments.explained if report.moments else None
    if explained is not None:
        return explained.share, NORMAL_95 * explained.error
    found = accuracy_of(report)
    return None if found is None or found.metric != "r2" else (found.value, found.error)


def _lost(report: Report, found: Contribution) -> Cell:
    if found.lost is not None:
        half = None if found.lost_error is None else 100 * NORMAL_95 * found.lost_error
        aside = "" if half is None else f"± {half:.0f}"
        return Cell(f"{100 * found.lost:.0f} points", found.lost, aside=aside)
    whole = _whole(report)
    if whole is None or found.without is None:
        return NONE
    points = whole[0] - found.without
    return Cell(f"{100 * points:.0f} points", points)


def _shares(report: Report, party: str, found: Contribution) -> list[Cell]:
    error = None if found.alone_error is None else NORMAL_95 * found.alone_error
    aside = "" if error is None else f"± {100 * error:.0f}"
    label = f"{party} alone: {100 * found.alone:.0f} percent"
    ranks = []
    if _ranks(report):
        ranks.append(_auc(found.alone_auc, found.alone_auc_error))
        ranks.append(_auc(found.without_auc, found.without_auc_error))
    return [
        Cell(strip=share_strip(found.alone, error, colour=colours(report)[party], label=label)),
        Cell(f"{100 * found.alone:.0f} %", found.alone, aside=aside),
        _lost(report, found),
        *ranks,
    ]


def _auc(value: float | None, error: float | None) -> Cell:
    if value is None:
        return NONE
    aside = "" if error is None else f"± {NORMAL_95 * error:.2f}"
    return Cell(f"{value:.3f}", value, aside=aside)


def _whole_row(report: Report, effects: list[Effect]) -> Row:
    whole, ranks = _whole(report), [NONE] * (2 if _ranks(report) else 0)
    if ranks and report.moments and report.moments.explained:
        whole_auc = report.moments.explained
        ranks[0] = _auc(whole_auc.auc, whole_auc.auc_error)
    counts = _counts(report, effects)
    if whole is None:
        return Row((Cell("all together"), NONE, NONE, NONE, *ranks, *counts))
    share, half = whole
    label = f"all together: {100 * share:.0f} percent"
    strip = share_strip(share, half, colour="ink", label=label)
    told = Cell(f"{100 * share:.0f} %", share, aside=f"± {100 * half:.0f}")
    return Row((Cell("all together"), Cell(strip=strip), told, NONE, *ranks, *counts))
