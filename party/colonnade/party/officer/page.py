"""The page beside a bundle of evidence: the same facts, for reading."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from colonnade.ledger.decisions import NONE
from colonnade.ledger.export import Summary, Verified, summarise
from colonnade.ledger.state import LedgerState
from colonnade.party.officer.reading import paid_for, reason_of, standing_of
from colonnade.privacy.accounting import format_units, format_upper_bound, rho_from_units, rounded
from colonnade.privacy.disclosure import PREDICTION
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.privacy.ring_noise import HOSTILE
from colonnade.report.parts import Cell, Fact, Facts, Fold, Note, Page, Section, Table
from colonnade.report.render import render_page
from colonnade.report.text import capital, count, in_words
from colonnade.report.views.cells import plain_table
from colonnade.report.views.glossary import kind_words

_NOBODY = "(none said)"
_ACCOUNTS = {"": "the table", MEMBERSHIP: "alignments", HOSTILE: "shields of sealed jobs"}


def evidence_page(found: Verified, delta: float) -> str:
    """Return the page of a bundle that verified."""
    summary, entries = (
        summarise(found.state),
        [json.loads(line) for line in found.lines],
    )
    decided = [entry for entry in entries if entry["type"] == "decided"]
    refused = [
        job
        for job in found.state.docket.proposals
        if standing_of(found.state, job) in ("refused", "declined")
    ]
    jobs = len(found.state.docket.proposals)
    first, last = entries[0]["time"], entries[-1]["time"]
    page = Page(
        title=f"Evidence of {summary.party}",
        headline=f"{capital(summary.party)} was asked for {count(jobs, 'job')} and refused "
        f"{in_words(len(refused))} of them.",
        lead=f"Decisions of people on record, each signed: {len(decided)}. What follows is in "
        "the signed file beside this page; that file is the evidence, and anybody can verify it.",
        chips=(("good", "verified when it was written"),)
        if not summary.simulation
        else (("bad", "a simulation's ledger: not private"),),
        meta=(
            ("ledger", summary.ledger_id),
            ("entries", f"{summary.entries:,d}"),
            ("from", _day(first)),
            ("to", _day(last)),
        ),
        footer=f"{summary.party}, ledger {summary.ledger_id}",
        sections=(
            _budget(summary, delta),
            _jobs(found.state, _times(entries), delta),
            _decisions(decided),
            _left(found.attached.left),
            _policies(found, entries),
            _proof(found),
        ),
    )
    return render_page(page)


def _budget(summary: Summary, delta: float) -> Section:
    def cells(units: int, *, left: bool = False) -> Cell:
        return _amount(units, delta, left=left)

    lines = []
    for each in summary.accounts:
        amounts = each.cap, each.spent, each.reserved, each.left
        shown = [cells(units, left=at in (0, 3)) for at, units in enumerate(amounts)]
        if each.name == MEMBERSHIP:  # epsilons of several runs have no sum that rho gives
            shown = [_rho(units, left=at in (0, 3)) for at, units in enumerate(amounts)]
        if each.name != PREDICTION:  # which has no price
            lines.append((Cell(_ACCOUNTS.get(each.name, f"account {each.name}")), *shown))
    lines += [
        (
            Cell(each.whose),
            Cell("none") if each.cap is None else cells(each.cap, left=True),
            cells(each.spent),
            cells(each.reserved),
            Cell("") if each.cap is None else cells(each.left, left=True),
        )
        for each in summary.scoped
    ]
    head = ("of", "cap", "spent", "set aside", "left")
    about = (
        f"At delta {delta:g}. Rho adds up, epsilon does not. By month, operator and purpose, jobs "
        "and alignments count together. What is spent is rounded up and what is left down."
    )
    table = _table("caps", "Caps and what was spent", head, lines, about=about)
    return Section("budget", "Budget", "Budget", (), (table,))


def _jobs(state: LedgerState, times: Mapping[str, int], delta: float) -> Section:
    lines = []
    for job, proposal in state.docket.proposals.items():
        entry = proposal.entry
        paid = paid_for(state, job)
        aligns = entry.kind == "alignment"
        most = _one_run(entry.units) if aligns else _amount(entry.units, delta)
        lines.append(
            (
                Cell(job[:12], note=_when(times[job])),
                Cell(entry.name or _NOBODY),
                Cell(
                    (entry.requested_by or _NOBODY).rpartition("/")[2],
                    note=f"{entry.requested_by} through {entry.coordinator}",
                ),
                Cell(entry.purpose or _NOBODY),
                Cell(standing_of(state, job), note=reason_of(state, job)),
                Cell("") if entry.approve == NONE else most,
                _one_run(paid) if aligns else _amount(paid, delta),
            )
        )
    head = ("job", "name", "asked by", "purpose", "outcome", "at most", "paid")
    table = _table("jobs", "Every job that was proposed", head, lines, texts=5)
    text = "Accepted or refused: the specification of each is in the file, byte for byte."
    return Section("jobs", "Jobs", "Jobs", (text,), (table,))


def _amount(units: int, delta: float, *, left: bool = False) -> Cell:
    """Return an amount in two lines: epsilon, and rho in brackets beneath."""
    epsilon, _, rho = format_units(units, delta, left=left).partition(" (")
    return Cell(epsilon, units, note=f"({rho}")


def _rho(units: int, *, left: bool = False) -> Cell:
    return Cell(f"rho {rounded(rho_from_units(units), down=left)}", units)


def _one_run(units: int) -> Cell:
    """Return the price of one alignment: its epsilon, and rho in brackets beneath."""
    epsilon = format_upper_bound(math.sqrt(2.0 * rho_from_units(units)))
    return Cell(f"epsilon {epsilon}", units, note=f"({_rho(units).text})")


def _decisions(decided: Sequence[Mapping[str, Any]]) -> Section:
    lines = [
        (
            Cell(_when(entry["time"])),
            Cell(entry["job"][:12]),
            Cell(entry["verdict"]),
            Cell(entry["reason"]),
            Cell(f"{entry['approver'][:8]}…{entry['approver'][-4:]}"),
        )
        for entry in decided
    ]
    head = ("when", "job", "verdict", "reason", "approver's key")
    table = _table("decisions", "Every decision of a person", head, lines, texts=5)
    text = "Each is signed by the key that is named; the file has the signatures."
    return Section("decisions", "Decisions", "Decisions", (text,), (table,) if lines else ())


def _left(log: Sequence[Mapping[str, Any]]) -> Section:
    messages, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for line in log:
        key = str(line.get("job", ""))[:12], str(line.get("kind", ""))
        messages[key] += 1
        sizes[key] += int(line.get("payload_bytes", 0))
    lines = [
        (Cell(job or "(session)"), Cell(kind_words(kind)[0]), _number(many), _number(sizes[at]))
        for at, many in messages.items()
        for job, kind in (at,)
    ]
    table = _table(
        "left", "What left", ("job", "what", "messages", "payload bytes"), lines, texts=2
    )
    text = "From the party's own log of what it sent, which is in the file line by line."
    return Section("left", "What left", "What left", (text,), (table,) if lines else ())


def _policies(found: Verified, entries: Sequence[Mapping[str, Any]]) -> Section:
    since = {entry["version"]: entry["time"] for entry in entries if entry["type"] == "policy"}
    folds = tuple(
        Fold(
            f"Version {version}, in use from {_when(since[version])}",
            (Facts(tuple(_policy_lines(text))),),
        )
        for version, text in found.attached.policies.items()
    )
    text = "What this organization agreed to, in the words of its file. Absence means no."
    return Section("policies", "Policies", "Policies", (text,), folds)


def _policy_lines(text: bytes) -> Iterator[Fact]:
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield Fact(f"line {number}", line, mono=True)


def _proof(found: Verified) -> Section:
    opened, attached = found.state.opened, found.attached
    facts = [
        Fact("public key", opened.public_key if opened else "", mono=True),
        *(Fact("approver", key, mono=True) for key in found.state.docket.approvers),
        Fact("chain head", found.state.head.chain_hash.hex(), mono=True),
        Fact("specifications", str(len(attached.specs))),
        Fact("receipts", str(len(attached.receipts))),
    ]
    note = Note(
        "The command 'colonnade ledger verify' with the file and this public key recomputes the "
        "chain, every price and total, every cap, every signature and the digests of all that is "
        "attached.",
        "To check it",
    )
    return Section("proof", "Proof", "Proof", (), (Facts(tuple(facts)), note))


def _times(entries: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    times: dict[str, int] = {}
    for entry in entries:
        if entry["type"] == "proposed":
            times.setdefault(entry["job"], entry["time"])
    return times


def _table(
    key: str,
    title: str,
    head: Sequence[str],
    lines: Iterable[Sequence[Cell]],
    *,
    texts: int = 1,
    about: str = "",
) -> Table:
    """Return a table whose rows become lists on a phone."""
    made = plain_table(key, title, head, lines, texts=texts, about=about)
    return replace(made, layout="stack")


def _number(value: int) -> Cell:
    return Cell(f"{value:,d}", value)


def _when(time: int) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%MZ")


def _day(time: int) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d")
