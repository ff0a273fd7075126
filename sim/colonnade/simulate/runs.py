"""What every simulation does around its job: a place for it, a run folder, a few last lines."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from colonnade.cli.run_folder import file_errors, workplace
from colonnade.client import JobReport
from colonnade.core.errors import BadInput
from colonnade.core.text import counted
from colonnade.methods.sealed.claims import PEERS
from colonnade.privacy.accounting import format_upper_bound, rounded
from colonnade.simulate.data.from_file import FileTable
from colonnade.simulate.run import Clock

Result = dict[str, Any]


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add where a simulation writes and how it answers."""
    parser.add_argument("--out", type=Path, help="run folder; default runs/<job>")
    parser.add_argument("--keep", type=Path, help="keep the organizations' folders here")
    parser.add_argument(
        "--holdout",
        type=float,
        default=0.2,
        metavar="PART",
        help="rows to score on that nothing is fitted to, as a part of all, at most 20000; "
        "synthetic rows are added for it; 0 scores the fitted rows; default 0.2",
    )


def add_references_option(parser: argparse.ArgumentParser) -> None:
    """Add whether references are fitted."""
    parser.add_argument(
        "--no-references",
        dest="references",
        action="store_false",
        help="do not fit the references that the model is compared with",
    )


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add the file that a simulation takes its rows from."""
    parser.add_argument("--data", type=Path, help="CSV or Parquet; default: synthetic rows")
    parser.add_argument("--target", help="with --data: the label's column")
    parser.add_argument(
        "--schema",
        type=Path,
        help="with --data: declared columns (TOML); without it, bounds and levels are taken from "
        "the file, which no party may do",
    )


def check_file_options(arguments: argparse.Namespace) -> None:
    """Refuse options of a file without the others."""
    if (arguments.data is None) != (arguments.target is None):
        raise BadInput("--data and --target go together")
    if arguments.schema is not None and arguments.data is None:
        raise BadInput("--schema declares the bounds of --data; give both")


def say_columns(arguments: argparse.Namespace, table: FileTable) -> None:
    """Describe which columns of a file are left out, and which were read in a way no party may."""
    if table.skipped:
        names = ", ".join(table.skipped)
        say(arguments, f"no numbers and no levels, left out: {names} (--schema declares dates)")
    if table.levelled:
        names = ", ".join(table.levelled)
        say(arguments, f"levels taken from the file, in a simulation only: {names}")


def simulate(
    arguments: argparse.Namespace,
    run: Callable[[argparse.Namespace, Path], Result],
    lines: Callable[[Result], Iterator[str]],
) -> int:
    """Run in a folder of its own and print what came of it: ``lines``, or all of it as JSON.

    A signal that asks the command to stop ends its processes and removes that folder first.
    """
    with workplace(keep=arguments.keep, out=arguments.out) as folder:
        result = run(arguments, folder)
    print(json.dumps(result) if arguments.json else _text(result, list(lines(result))))
    return 0


def say(arguments: argparse.Namespace, text: str) -> None:
    """Print what happens; a machine hears the result only."""
    if not arguments.json:
        print(text, file=sys.stderr, flush=True)


def write_run(arguments: argparse.Namespace, report: Mapping[str, Any]) -> Path:
    """Write a run's files and return where they are."""
    folder: Path = arguments.out or Path("runs") / report["job_id"][:12]
    with file_errors(folder):
        return JobReport(dict(report)).write(folder)


def finish(
    arguments: argparse.Namespace, report: Mapping[str, Any], clock: Clock, found: Result
) -> Result:
    """Write the run folder and return what every result has, with what was ``found`` amid it."""
    out = write_run(arguments, report)
    clock.mark("written")
    return {
        "job_id": report["job_id"],
        "method": report["method"],
        "private": report["private"],
        "seconds": clock.marks["written"],
        "first_round_s": clock.marks.get("first_round", clock.marks["ended"]),
        "rounds": report["rounds"]["done"],
        **found,
        "unused": report["unused"],
        "uplink": report["uplink"],
        "folder": str(out),
    }


def _text(result: Result, lines: Sequence[str]) -> str:
    uplink, rounds = result["uplink"], result["rounds"]
    bytes_ = f"{uplink['payload_bytes']} payload bytes, predicted {uplink['predicted_bytes']}"
    if "clients" in uplink:  # how many answers come is not known before the job
        each, most = uplink["clients"]["body_bytes"], uplink["predicted_most_bytes"]
        answers = f"{result['answers']} answers of {each} bytes"
        if uplink["clients"].get("sums"):
            answers = f"sums of {each} bytes over {result['answers']} answers"
        bytes_ = f"{uplink['payload_bytes']} payload bytes: {answers}; predicted at most {most}"
    return "\n".join(
        [
            f"job {result['job_id'][:12]}: {counted(rounds, 'round')} in {result['seconds']:.1f} s",
            *lines,
            f"  uplink   {bytes_}; {uplink['wire_bytes']} on the wire",
            f"  report   {result['folder']}/report.html",
            *(f"  note     {each['note']}" for each in result["unused"]),
        ]
    )


def scored_on(quality: Mapping[str, Any]) -> str:
    """Return what a score's number is worth."""
    return f"simulation only, {quality['n_rows']} {quality['rows']} rows"


def privacy_lines(privacy: Mapping[str, Any]) -> Iterator[str]:
    """Describe what is promised in all, jointly and at each party, and what of it is for what."""

    def told(amount: Mapping[str, float]) -> str:
        return f"epsilon {format_upper_bound(amount['epsilon'])} (rho {rounded(amount['rho'])})"

    joint, parties = privacy["joint"], privacy["parties"]
    each = ", ".join(f"{one['party']} {format_upper_bound(one['epsilon'])}" for one in parties)
    yield f"  privacy  joint {told(joint)} at delta {joint['delta']:g}; {each}"
    spent = f"spent epsilon {format_upper_bound(joint['spent_epsilon'])}"
    spent += f" (rho {rounded(joint['spent'])})"
    if joint["bounds"]["rho"]:
        for who, one in (("joint", joint), *((one["party"], one) for one in parties)):
            yield f"           {who}: bounds {told(one['bounds'])} + job {told(one['job'])}"
        spent += "; rho adds up, epsilon does not"
    yield f"           {spent}"
    if privacy["premise"] == PEERS:
        yield "           experimental: holds computationally if all parties follow the protocol"
    yield f"  bounds   {privacy['bounds_note']}"
