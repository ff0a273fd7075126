"""``colonnade align show``: where an alignment stands, the overlap, and who learns what."""

import argparse
import json
from typing import Any

from colonnade.cli.job.connection import add_client_options, open_client
from colonnade.core.errors import BadInput
from colonnade.methods.alignment.claims import PROMISE, learned
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.job import Job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser, job=True)


def run(arguments: argparse.Namespace) -> int:
    """Show the alignment."""
    with open_client(arguments) as client:
        report = client.report(arguments.job).document
    if report["method"] != "alignment":
        raise BadInput(f"job {report['job_id'][:12]} is no alignment; see colonnade job show")
    if arguments.json:
        print(json.dumps(report))
        return 0
    print("\n".join(report_lines(report)))
    return 0


_SPREAD = "(± one standard deviation)"
_FEW = 0.02  # part of a party's people; less in common is hardly what was meant


def report_lines(report: dict[str, Any]) -> list[str]:
    """Lay an alignment's report out for people."""
    rounds, uplink = report["rounds"], report["uplink"]
    lines = [
        f"job        {report['job_id']}",
        f"state      {report['state']} {report['reason']}".rstrip(),
        f"rounds     {rounds['done']} of {rounds['planned']}",
        f"uplink     {uplink['payload_bytes']} bytes, predicted {uplink['predicted_bytes']}",
    ]
    if (found := report.get("alignment")) is None:
        return lines
    lines += [f"alignment  {found['name']}", f"mode       {found['mode']}"]
    if found["kept"] is not None:
        lines.append(f"rows       {found['kept']} that jobs use")
        lines.append(f"overlap, from counts with noise {_SPREAD}:")
        lines += _overlap_lines(found)
    lines += [_told(each["who"], each["what"]) for each in found["learned"]]
    return [*lines, found["promise"]]


def summary_lines(report: dict[str, Any]) -> list[str]:
    """Describe the result of an alignment that has just ended, and the next steps."""
    found = report["alignment"]
    name = found["name"][:12]
    lines = [
        f"alignment {name}: {found['kept']} rows that jobs use; overlap, with noise {_SPREAD}:"
    ]
    return [
        *lines,
        *_overlap_lines(found),
        *_strangers(found["overlap"] or []),
        "next, at each party: stop it, then",
        f"  colonnade party ingest --config party.toml --alignment {name}",
        "  colonnade party run --config party.toml",
    ]


def _overlap_lines(found: dict[str, Any]) -> list[str]:
    lines = []
    for each in found["overlap"] or ():
        error = f" ± {each['error']:.0f}" if "error" in each else ""  # older coordinators tell none
        lines.append(f"  {' and '.join(each['parties']):<40} about {each['people']}{error}")
    return lines


def _strangers(overlap: list[dict[str, Any]]) -> list[str]:
    """Name pairs that have next to nobody in common, whose ids may be written differently."""
    people = {tuple(each["parties"]): each["people"] for each in overlap}
    return [
        f"note: {' and '.join(pair)} have next to nobody in common: are their ids written alike? "
        "'number' ignores leading zeros, 'fold-case' case ([[align]] ids of every policy)"
        for pair, count in people.items()
        if len(pair) == 2 and count < _FEW * min(people.get(pair[:1], 0), people.get(pair[1:], 0))
    ]


def learned_lines(job: Job) -> list[str]:
    """Describe what each side learns from an alignment that is asked for."""
    if not isinstance(job.method, AlignmentJobSpec):
        raise TypeError("the job is no alignment")
    spec = job.method.alignment
    pairs = learned([spec.mode], spec.noise, extends=spec.extends is not None)
    return [*(_told(who, what) for who, what in pairs), PROMISE]


def _told(who: str, what: str) -> str:
    return f"learns     {who}: {what}"
