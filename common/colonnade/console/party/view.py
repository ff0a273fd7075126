"""What the officer's page shows, from the ledger's snapshot, the policy and the log of what left.

Nothing here reads the table, holds a lock or writes; the running party is not disturbed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from colonnade.console.names import symbols, who
from colonnade.console.party.budget_plot import BudgetPlot, budget_plot
from colonnade.console.party.entries import EntryLine, in_words, parsed, spending
from colonnade.console.times import WARN_DAYS, days_left, full, moment
from colonnade.ledger.caps import OPERATOR, PURPOSE, ScopedBudget, describe_place
from colonnade.ledger.export import Account, summarise
from colonnade.ledger.storage.snapshot import Snapshot
from colonnade.party.officer.case import Case
from colonnade.party.officer.reading import cases
from colonnade.party.vault.meter import CONTROL, UplinkLine
from colonnade.privacy.accounting import format_share, format_units
from colonnade.privacy.disclosure import PREDICTION
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.privacy.ring_noise import HOSTILE
from colonnade.report.text import capital, count
from colonnade.report.views.glossary import kind_words

MAX_ENTRIES, MAX_SENT = 40, 30
_BESIDE = (MEMBERSHIP, PREDICTION, HOSTILE)  # accounts that have no part of the table's cap


@dataclass(frozen=True, slots=True)
class AmountView:
    """An amount of budget: its share of the cap in percent, and what people read."""

    percent: float
    share: str
    text: str


@dataclass(frozen=True, slots=True)
class BudgetView:
    """One budget: spent, set aside, left."""

    name: str
    cap: str
    spent: AmountView
    aside: AmountView
    left: AmountView


@dataclass(frozen=True, slots=True)
class SentLine:
    """Something that left."""

    time: str
    what: str
    job: str
    bytes: int


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry of the ledger."""

    seq: str
    time: str
    what: str
    by: str
    amount: str
    share: str


@dataclass(frozen=True, slots=True)
class OfficerPage:
    """The whole page."""

    party: str
    time: str
    chips: tuple[tuple[str, str], ...]
    headline: str
    lead: str
    queue: tuple[Case, ...]
    running: tuple[Case, ...]
    budget: BudgetView
    scoped: tuple[BudgetView, ...]
    plot: BudgetPlot | None
    sent: tuple[SentLine, ...]
    entries: tuple[EntryRow, ...]
    n_entries: int
    alignments: tuple[Case, ...]
    certificate: tuple[str, str]
    approvers: tuple[str, ...]


def officer_page(
    found: Snapshot,
    *,
    sent: Sequence[UplinkLine],
    alive: bool,
    certificate_ends: float,
    now: float,
) -> OfficerPage:
    """Return the page."""
    summary, everything = summarise(found.state, found.person), parsed(found.lines)
    account = _table(summary.accounts)
    every = cases(found, all_jobs=True)
    queue = tuple(case for case in every if case.waits)
    running = tuple(case for case in every if case.standing == "running")
    history = list(spending(everything, account.name))
    certificate = days_left(certificate_ends, now)
    return OfficerPage(
        party=summary.party,
        time=full(now),
        chips=_chips(alive, private=not summary.simulation),
        headline=headline(len(queue), alive=alive),
        lead=_lead(account, running, certificate),
        queue=queue,
        running=running,
        budget=_budget("The table", account.cap, account.spent, account.reserved),
        scoped=tuple(map(budget_of, summary.scoped)),
        plot=budget_plot(history, account.cap, now),
        sent=tuple(_sent(line, now) for line in reversed(sent) if line.kind != CONTROL)[:MAX_SENT],
        entries=tuple(
            _entry(in_words(each), account.cap, now) for each in reversed(everything[-MAX_ENTRIES:])
        ),
        n_entries=summary.entries,
        alignments=tuple(case for case in every if case.kind == "alignment"),
        certificate=certificate,
        approvers=summary.approver_keys,
    )


def headline(waiting: int, *, alive: bool) -> str:
    """Return the page's one statement."""
    if waiting:
        verb = "waits" if waiting == 1 else "wait"
        return f"{capital(count(waiting, 'job'))} {verb} for your decision."
    return "Nothing waits for you." if alive else "Nothing waits for you; the party is not running."


def amount(
    units: int, cap: int, *, delta: float | None = None, left: bool = False, text: str = ""
) -> AmountView:
    """Return an amount of a budget; what is left rounds down, costs round up.

    The digits are those of the command line (`format_units`, or the ``text`` that is given).
    """
    text = symbols(text or format_units(units, delta, left=left))
    share = format_share(units, cap, left=left)
    return AmountView(100.0 * min(units / max(cap, 1), 1.0), share, text)


def _table(accounts: Sequence[Account]) -> Account:
    """Return the account of the table, or of the client that has least left."""
    people = [each for each in accounts if each.name not in _BESIDE]
    return min(people, key=lambda each: each.left)


def _budget(name: str, cap: int, spent: int, reserved: int) -> BudgetView:
    return BudgetView(
        name,
        amount(cap, cap, left=True).text,
        amount(spent, cap),
        amount(reserved, cap),
        amount(max(0, cap - spent - reserved), cap, left=True),
    )


def budget_of(each: ScopedBudget) -> BudgetView:
    """Return the budget of an operator, a purpose or a month, or of each."""
    named = {PURPOSE: each.name, OPERATOR: who(each.name)}  # the latter says what it is
    name = (
        named[each.scope]
        if each.scope in named
        else each.name and describe_place((each.scope, each.name))
    )
    if each.cap is None:
        nothing, spent = amount(0, 1), amount(each.spent, each.spent)
        return BudgetView(name or f"no {each.scope} stated", "", spent, nothing, nothing)
    return _budget(name or f"each {each.scope}", each.cap, each.spent, each.reserved)


def _chips(alive: bool, *, private: bool) -> tuple[tuple[str, str], ...]:
    found = [("good", "Party running") if alive else ("warn", "Party not running")]
    if not private:
        found.append(("bad", "Simulation: not private"))
    return tuple(found)


def _lead(account: Account, running: Sequence[Case], certificate: tuple[str, str]) -> str:
    said = [f"{format_share(account.left, account.cap, left=True)} of the privacy budget is left."]
    if running:
        said.append(f"{capital(count(len(running), 'job'))} running.")
    said.append("The ledger verifies.")
    state, left = certificate
    if state == "warn":
        said.append(f"Your certificate ends in {left}, less than {WARN_DAYS}: renew it.")
    elif state == "bad":
        said.append(f"Your certificate {left}; no job can start until it is renewed.")
    return " ".join(said)


def _sent(line: UplinkLine, now: float) -> SentLine:
    called = kind_words(line.kind)[0]
    again = ", sent again" if line.retry else ""
    what = f"{called}, round {line.round}{again}"
    return SentLine(moment(line.time, now), what, line.job[:12], line.payload_bytes)


def _entry(line: EntryLine, cap: int, now: float) -> EntryRow:
    cost = None if line.units is None else amount(line.units, cap, left=line.allows)
    return EntryRow(
        f"{line.seq:,d}",
        moment(line.time, now),
        line.what,
        line.by,
        cost.text if cost else "–",
        cost.share if cost else "–",
    )
