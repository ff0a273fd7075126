"""A policy in sentences, and what changed between two of its versions."""

import difflib

from colonnade.console.names import who
from colonnade.methods.prediction.claims import exposure
from colonnade.party.alignment.policy import AlignAllowance
from colonnade.party.policy import ANY, Allowance, Policy
from colonnade.party.prediction.policy import PredictAllowance
from colonnade.party.sealed.policy import HOSTILE_DELTA
from colonnade.privacy.accounting import format_units
from colonnade.report.text import capital, listed


def sentences(policy: Policy) -> list[str]:
    """Return what a policy allows; what is not said is refused."""
    found = [line for each in policy.allowances for line in _allowance(each)]
    found += [line for each in policy.alignments for line in _alignment(each)]
    found += [line for each in policy.predictions for line in _prediction(each)]
    return found or ["Nothing is allowed: every job is refused."]


def _allowance(each: Allowance) -> list[str]:
    asked_by = "anybody" if ANY in each.operators else listed([*map(who, each.operators)])
    purposes = "any purpose" if ANY in each.purposes else listed(list(each.purposes))
    columns = "All columns" if ANY in each.features else f"{len(each.features)} columns"
    label = "and the label " if each.label else ""
    until = f" Jobs are accepted until {each.until}." if each.until else ""
    most, hub = format_units(each.max_units, left=True), who(each.coordinator.uri)
    lines = [
        f"Jobs of {asked_by} through the {hub}, for {purposes}, {_decided(each.needed)}.{until}",
        f"Methods: {listed(list(each.kinds))}. {columns} {label}may take part.",
        f"One job may cost at most {most}, in up to {each.max_rounds} rounds.",
    ]
    if each.sealed is not None:
        peers = listed(list(each.sealed.pins)) or "nobody yet"
        lines.append(
            f"Products under encryption (experimental) with {peers}, up to "
            f"{each.sealed.columns} columns. Their price holds if these peers follow the protocol "
            "and are computationally bounded; one that does not follow it could read about rows of "
            "its choice."
        )
        if each.sealed.shield_units:
            shield = format_units(each.sealed.shield_units, HOSTILE_DELTA)
            lines.append(f"Rows have a shield of {shield} against such a peer, for each job.")
    return lines


def _decided(needed: int) -> str:
    people = "an approver agrees" if needed == 1 else f"{needed} approvers agree"
    return f"wait until {people}" if needed else "pass without asking"


def _alignment(each: AlignAllowance) -> list[str]:
    modes = listed([mode.value for mode in each.modes])
    peers = "any party" if ANY in each.peers else listed(list(each.peers))
    with_whom = f"with {peers} ({modes}) through the {who(each.coordinator.uri)}"
    most = f"up to {each.max_people:,d} people, membership ε up to {each.max_epsilon:g}"
    return [f"People may be aligned {with_whom}: {most}."]


def _prediction(each: PredictAllowance) -> list[str]:
    model = f"the model of job {each.job[:12]}" if each.job else f"{len(each.models)} named models"
    again = " Rows may be scored again after an ingest." if each.rescore_after_ingest else ""
    missing = f" {capital(listed(list(each.middle)))} may be left out." if each.middle else ""
    rows = f"up to {each.max_rows:,d} rows until {each.until}"
    return [
        f"People may be scored by {model} for {each.receiver}, {each.purpose}: {rows}.",
        f"Such requests {_decided(each.needed)}.{again}{missing}",
        f"Scores are exact, without differential privacy. {exposure(1 + len(each.pins))}",
    ]


def changed_lines(old: str, new: str) -> list[tuple[str, str]]:
    """Return the lines that differ: a sign and the line; comments and blanks do not count."""
    before, after = _said(old), _said(new)
    found = difflib.unified_diff(before, after, n=0, lineterm="")
    return [(line[0], line[1:]) for line in list(found)[2:] if not line.startswith("@@")]


def _said(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
