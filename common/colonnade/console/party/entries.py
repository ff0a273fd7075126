"""Ledger entries in words, and what has been spent over time."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from colonnade.console.names import who
from colonnade.report.views.glossary import kind_words

_VERDICTS = {"approve": "Approved", "hold": "Held", "refuse": "Refused"}


@dataclass(frozen=True, slots=True)
class EntryLine:
    """An entry for people; ``units`` is what it costs, sets aside or ``allows``, if anything."""

    seq: int
    time: float
    what: str
    by: str
    units: int | None = None
    allows: bool = False


@dataclass(frozen=True, slots=True)
class Spending:
    """What one account had spent at some time, by purpose."""

    time: float
    by_purpose: Mapping[str, int]


def parsed(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Return the entries of a snapshot."""
    return [json.loads(line) for line in lines]


def in_words(entry: Mapping[str, Any]) -> EntryLine:
    """Return what an entry says."""
    what, by, units = _words(entry)
    return EntryLine(
        entry["seq"], float(entry["time"]), what, by, units, allows=entry["type"] == "cap"
    )


def _words(entry: Mapping[str, Any]) -> tuple[str, str, int | None]:
    job = str(entry.get("job", ""))[:12]
    match entry["type"]:
        case "charged" if not entry["units"]:
            return f"Noted, without a price: {_release(entry)}", "vault", None
        case "admitted" if not entry["units"]:
            return f"Accepted, without a price: job {job}", "vault", None
        case "charged":
            return f"Charged: {_release(entry)}", "vault", entry["units"]
        case "charged-together":
            count = len(entry["accounts"])
            return f"Charged {count} clients: {_release(entry)}", "vault", entry["units"]
        case "stored" | "stored-together":
            return f"Stored before it left: {_release(entry)}", "vault", None
        case "admitted" | "admitted-together" | "admitted-after":
            return f"Set aside for job {job}", "vault", entry["units"]
        case "purged":
            return f"Stored bytes deleted, never sent again: {_release(entry)}", "vault", None
        case "closed":
            return f"Ended: job {job}; what was set aside is free", "vault", None
        case "settled":
            return f"Ended: job {job}; kept for its evaluation", "vault", entry["units"]
        case "decided":
            reason = f": {entry['reason']}" if entry["reason"] else ""
            words = f"{_VERDICTS.get(entry['verdict'], 'Decided on')} job {job}{reason}"
            return words, f"approver {entry['approver'][:8]}", None
        case "proposed":
            purpose = f" for {entry['purpose']}" if entry["purpose"] else ""
            return (
                f"Asked for: {entry['name']}{purpose}, job {job}",
                who(entry["coordinator"]),
                None,
            )
        case "declined":
            return f"Refused by policy: job {job}, {entry['reason']}", "vault", None
        case "policy":
            return f"Policy version {entry['version']} taken into use", "operator", None
        case "cap":
            scope, name = entry["scope"], entry["account"]
            whose = f" of {f'{scope} {name}' if name else f'each {scope}'}" if scope else ""
            return f"Cap{whose} set: {entry['reason']}", "operator", entry["units"]
        case "opened":
            return "Ledger created", "operator", None
        case "approvers":
            return f"Approvers changed: {len(entry['keys'])} may decide", "operator", None
        case "bound":
            return f"Bound to a table: {entry['reason']}", "operator", None
        case "joined":
            return f"Joined the account of the people: {entry['reason']}", "operator", None
        case "person":
            words = (
                "Charged to the account of the people, but not used"
                if entry["wasted"]
                else ("Charged to the account of the people first")
            )
            return f"{words}: job {job}", "vault", entry["units"]
        case other:
            return other.replace("-", " ").capitalize(), "vault", None


def _release(entry: Mapping[str, Any]) -> str:
    called = kind_words(entry["kind"])[0]
    return f"{called}, round {entry['round']}, job {str(entry['job'])[:12]}"


def spending(entries: Sequence[Mapping[str, Any]], account: str) -> Iterator[Spending]:
    """Yield what ``account`` had spent after each charge, by the purpose of the job."""
    purposes, spent = dict[str, str](), dict[str, int]()
    for entry in entries:
        match entry["type"]:
            case "proposed":
                purposes[entry["job"]] = entry["purpose"]
            case "charged" if entry["account"] == account and entry["units"]:
                purpose = purposes.get(entry["job"], "")
                spent[purpose] = spent.get(purpose, 0) + entry["units"]
                yield Spending(float(entry["time"]), dict(spent))
            case _:
                continue
