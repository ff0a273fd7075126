"""What it cost in privacy: who paid, the promise, and every amount for an auditor."""

from colonnade.privacy.accounting import RHO_UNIT, epsilon_of, rho_from_units
from colonnade.report.parts import Block, Cell, Column, Fold, Mark, Note, Row, Section, Strip, Table
from colonnade.report.schema import JobSpend, PartySpend, Privacy, Report, Spend
from colonnade.report.schema_parts import Amount, Sealed
from colonnade.report.schema_results import Evaluation
from colonnade.report.text import (
    at_most,
    epsilon_down,
    epsilon_up,
    in_words,
    odds,
    percent_down,
    percent_up,
    short,
)
from colonnade.report.views.cells import (
    NONE,
    colours,
    cost,
    number,
    party_cell,
    plain_table,
    priced,
)
from colonnade.report.views.glossary import kind_words

NOT_TRUE = "Not true of this run, only of the same job with real noise: "


def privacy_section(report: Report, privacy: Privacy) -> Section:
    """Describe what is promised to whom and what of it was used."""
    blocks: list[Block] = [_paid_table(report, privacy), promise(report, privacy.statement)]
    if report.sealed is not None:
        blocks.append(_sealed_table(report, report.sealed))
    blocks.append(Fold("What was bought, release by release", (_kind_table(report, privacy),)))
    blocks.append(
        Fold("Exact amounts, for an auditor", (_exact_table(privacy, clients=report.over_clients),))
    )
    if privacy.by_round:
        blocks.append(Fold("Spent in each round", (_round_table(privacy),)))
    promised = with_evaluation(report) or privacy.joint.promised
    lead = explain(promised.max.epsilon, privacy.delta, clients=report.over_clients)
    if report.sealed is not None:
        lead = lead.replace("anyone can learn", "anyone who follows the protocol can learn")
    return Section(
        "privacy", "What it cost in privacy", "Privacy", (lead, _about(report)), tuple(blocks)
    )


def explain(epsilon: float, delta: float, *, clients: bool = False) -> str:
    """Describe what epsilon means, where it first matters."""
    whom = "one client" if clients else "one person"
    return (
        f"ε (epsilon) bounds what anyone can learn about {whom} from all that was sent. At"
        f" {epsilon_up(epsilon)} a guess that was 50 : 50 can become {odds(epsilon)}, with a"
        f" chance of failure of one in {short(round(1.0 / delta))} (δ = {short(delta, 3)}). Smaller"
        " is safer."
    )


def promise(report: Report, statement: str) -> Note:
    """Return the promise in its box."""
    unless = "" if report.private else NOT_TRUE
    told = f"{unless}{statement}{evaluation_promise(report)}"
    return Note(told, "The promise", "good" if report.private else "bad")


def with_evaluation(report: Report) -> Spend | None:
    """Return what one person at all parties may be charged and was, evaluations included.

    None without one, or if the other amounts count it already.
    """
    privacy, found = report.privacy, report.evaluation
    if privacy is None or found is None or found.spent is None:
        return None

    def amount(units: int) -> Amount:
        rho = rho_from_units(units)
        return Amount(units=units, rho=rho, epsilon=epsilon_of(rho, privacy.delta))

    promised, more = privacy.joint.promised, found.spent.units
    return Spend(max=amount(promised.max.units + more), spent=amount(promised.spent.units + more))


def evaluation_promise(report: Report) -> str:
    """Return what the promise comes to with the model's evaluations, in one figure."""
    whole, found = with_evaluation(report), report.evaluation
    if whole is None or found is None or found.spent is None:
        return ""
    return (
        f" The model was evaluated besides: {found.party} paid epsilon"
        f" {at_most(found.spent.epsilon)} for it. With that, the epsilon of a person whose row is"
        f" at every party is at most {at_most(whole.max.epsilon)}, under the same premises."
    )


def _about(report: Report) -> str:
    whose = "A client" if report.over_clients else "An organization"
    return (
        f"The most that a job may cost is what its parties agreed to; what was spent is at most"
        f" that. {whose}'s budget covers all that it ever sends. Shares and ρ add up, ε does not."
    )


def _paid_table(report: Report, privacy: Privacy) -> Table:
    clients = report.over_clients
    bought = any(party.bought for party in privacy.parties)
    columns = [
        Column("whose data", number=False),
        Column("share of the budget", plot=True),
        Column("this job"),
        *([Column("for bounds, before"), Column("job at most")] if bought else []),
        Column("promised at most"),
        Column("job, of its budget" if bought else "of its budget"),
        Column("left afterwards"),
    ]
    rows = [_paid_row(report, party, privacy.delta, bought=bought) for party in privacy.parties]
    if not clients:
        n_parties = len(privacy.parties)
        who = f"one person at all {in_words(n_parties)}" if n_parties > 1 else "one person"
        joint = privacy.joint
        cells = [Cell(who), Cell(), cost(joint.spent)]
        cells += [cost(joint.bounds), cost(joint.max)] if bought else []
        whole, evaluation = with_evaluation(report), report.evaluation
        rows.append(Row((*cells, cost(joint.promised.max), NONE, NONE), total=whole is None))
        if whole is not None and evaluation is not None:
            rows += _with_evaluation(report, evaluation, whole, bought=bought)
    about = "Grey: spent before this job. Colour: this job. The bar is the whole budget, in ρ."
    label = f" Whose releases depend on the label: {privacy.label.who}."
    if clients:
        label = (
            " Amounts are those of the party's client that paid most; all of a client's rows, its"
            " labels among them, are protected together. Spent in all jobs is what one of the"
            " clients is known to have spent at least."
        )
    about += f"{label} Bounds: {privacy.bounds_note}."
    return Table("privacy-table", "Who paid", tuple(columns), tuple(rows), about=about)


def _paid_row(report: Report, party: PartySpend, delta: float, *, bought: bool) -> Row:
    who = party_cell(report, party.party)
    if report.over_clients:
        who = party_cell(report, party.party, aside="one client")
    cells = [who, Cell(strip=_budget_strip(report, party)), cost(party.spent)]
    cells += [cost(party.bounds), cost(party.max)] if bought else []
    cells.append(cost(party.promised.max))
    cap, ledger = party.cap, party.ledger_spent
    if cap is None or not cap.units:
        return Row((*cells, NONE, NONE))
    used = party.spent.units / cap.units
    cells.append(Cell(percent_up(used), used, note=f"of {epsilon_up(cap.epsilon)}"))
    if ledger is None:
        return Row((*cells, NONE))
    left = max(0, cap.units - ledger.units)
    epsilon = epsilon_of(rho_from_units(left), delta) if left else 0.0
    share = left / cap.units
    cells.append(Cell(percent_down(share), share, note=epsilon_down(epsilon)))
    return Row(tuple(cells))


def _with_evaluation(
    report: Report, evaluation: Evaluation, whole: Spend, *, bought: bool
) -> list[Row]:
    """Return what evaluations of the model cost besides, and the total with them."""
    empty = [NONE, NONE] if bought else []
    who = party_cell(report, evaluation.party, aside="for the evaluation")
    paid = cost(evaluation.spent)
    total = Cell("one person, evaluation included")
    return [
        Row((who, Cell(), paid, *empty, paid, NONE, NONE), total=True),
        Row(
            (total, Cell(), cost(whole.spent), *empty, cost(whole.max), NONE, NONE),
            total=True,
        ),
    ]


def _budget_strip(report: Report, party: PartySpend) -> Strip | None:
    cap = party.cap
    if cap is None or not cap.units:
        return None
    spent = party.spent.units
    known = spent if party.ledger_spent is None else max(spent, party.ledger_spent.units)
    before, all_ = 100.0 * (known - spent) / cap.units, 100.0 * known / cap.units
    label = f"{before:.1f} percent of the budget spent before, {all_ - before:.1f} by this job"
    marks = [Mark("track", 0.0, 100.0), Mark("bar", 0.0, min(100.0, before), "spent")]
    marks.append(Mark("bar", before, min(100.0, all_), colours(report)[party.party], label))
    return Strip(label, tuple(marks))


def _kind_table(report: Report, privacy: Privacy) -> Table:
    lines = [
        [
            Cell("bounds", note="range of each column, before the job"),
            party_cell(report, party.party),
            NONE,
            priced(party.bought.epsilon),
            priced(party.bought.rho),
            number(party.bought.units),
        ]
        for party in privacy.parties
        if party.bought
    ]
    for party in privacy.parties:
        for kind in party.by_kind:
            words, what = kind_words(kind.kind)
            note = f"{kind.kind}: {what}" if what else kind.kind if words != kind.kind else ""
            lines.append(
                [
                    Cell(words, note=note),
                    party_cell(report, party.party),
                    number(kind.releases),
                    priced(kind.spent.epsilon),
                    priced(kind.spent.rho),
                    number(kind.spent.units),
                ]
            )
    of = "one client" if report.over_clients else "all"
    head = ("kind", "by", "releases", f"ε of {of}", f"ρ of {of}", "exact units (ρ × 2⁵⁰)")
    return plain_table("releases", "Releases by kind", head, lines, texts=2)


def _sealed_table(report: Report, sealed: Sealed) -> Table:
    """Describe on which promise every release rests."""
    lines = []
    for each in sealed.releases:
        words, _ = kind_words(each.kind)
        kind = Cell(words, note="" if words == each.kind else each.kind)
        lines.append([party_cell(report, each.party), kind, Cell(each.holds), priced(each.rho)])
    return plain_table(
        "sealed",
        "What each release's promise rests on (experimental)",
        ("by", "kind", "the promise", "ρ"),
        lines,
        texts=3,
        about=sealed.promise,
        layout="stack",
    )


def _exact_table(privacy: Privacy, *, clients: bool) -> Table:
    """List every amount in units, for those who recompute."""
    amounts: list[tuple[str, str, Amount | None]] = []
    for party in privacy.parties:
        name = f"one client at {party.party}" if clients else party.party
        amounts += _amounts(name, party)
        amounts += [(name, "cap", party.cap), (name, "spent under the cap", party.ledger_spent)]
        amounts += [(name, f"spent on {kind.kind}", kind.spent) for kind in party.by_kind]
    if not clients:
        amounts += _amounts("one person, jointly", privacy.joint)
        amounts += _amounts("the label", privacy.label)
    return plain_table(
        "amounts",
        "Exact amounts",
        ("whose data", "amount", "units", "ρ", "ε"),
        [
            [Cell(who), Cell(what), number(found.units), priced(found.rho), priced(found.epsilon)]
            for who, what, found in amounts
            if found is not None
        ],
        texts=2,
        about="One unit is ρ 2⁻⁵⁰. Rounded up to four digits here; exact in the downloaded file.",
    )


def _amounts(name: str, spend: JobSpend) -> list[tuple[str, str, Amount | None]]:
    found: list[tuple[str, str, Amount | None]] = [
        (name, "job's maximum", spend.max),
        (name, "spent in this job", spend.spent),
        (name, "paid for bounds", spend.bounds),
    ]
    if spend.total is not None:
        found.append((name, "total: bounds and job's maximum", spend.total.max))
        found.append((name, "total: spent on bounds and job", spend.total.spent))
    return found


def _round_table(privacy: Privacy) -> Table:
    lines = [
        [number(row.round), Cell(party), number(units), priced(units / RHO_UNIT)]
        for row in privacy.by_round
        for party, units in row.spent.items()
    ]
    return plain_table(
        "rounds", "Spent in each round", ("round", "party", "units", "ρ"), lines, texts=2
    )
