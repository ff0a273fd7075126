"""What the verbs of ``colonnade job`` share: which coordinator, as whom, how a job is followed."""

import argparse
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from colonnade.cli.progress import show_progress
from colonnade.cli.stopping import Stopped
from colonnade.cli.streams import say
from colonnade.client import Client, JobReport, JobView
from colonnade.core.errors import BadInput, JobEnded, StoreFailed
from colonnade.methods.base import Unit
from colonnade.pki.authority import load_credentials
from colonnade.pki.register import WARN_DAYS, days_left
from colonnade.privacy.accounting import format_units
from colonnade.report.terminal import result_lines, results_of

ADDRESS = "coordinator.txt"
"""File of an operator's folder with the address that `coordinator new` wrote."""


def add_client_options(parser: argparse.ArgumentParser, *, job: bool = False) -> None:
    """Add where the coordinator is and who asks, and with ``job`` about which job."""
    if job:
        parser.add_argument("job", help="the job's name, or its beginning")
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="or COLONNADE_COORDINATOR")
    parser.add_argument(
        "--credentials",
        type=Path,
        help="folder of an operator's key and certificate, or COLONNADE_CREDENTIALS",
    )
    parser.add_argument(
        "--insecure", metavar="URI", help="on loopback, without TLS, as this operator"
    )


def open_client(arguments: argparse.Namespace) -> Client:
    """Return a client of the coordinator that the options or the environment name."""
    folder = arguments.credentials or os.environ.get("COLONNADE_CREDENTIALS")
    address = arguments.coordinator or os.environ.get("COLONNADE_COORDINATOR")
    if not address and folder and (noted := Path(folder) / ADDRESS).is_file():
        address = noted.read_text("utf-8", "replace").strip()
    if not address:
        raise BadInput("say where the coordinator is: --coordinator or COLONNADE_COORDINATOR")
    if arguments.insecure:
        return Client(address, identity=arguments.insecure)
    if not folder:
        raise BadInput("say who you are: --credentials or COLONNADE_CREDENTIALS")
    client = Client(address, folder)
    _warn_of_end(Path(folder))
    return client


def _warn_of_end(folder: Path) -> None:
    """Say that the caller's certificate soon ends: nothing else would, until it has."""
    left = days_left(load_credentials(folder).not_after, datetime.now(UTC))
    if left <= WARN_DAYS:
        say(
            f"warning: the certificate in {folder} ends in {left} days; renew it: "
            f"colonnade pki renew --folder {folder}"
        )


def follow(client: Client, job: str, *, as_json: bool) -> int:
    """Show progress until the job ends; a bar on a terminal, plain lines elsewhere."""
    last = None
    try:
        for view in show_progress(client.watch(job), quiet=as_json):
            last = view
    except (Stopped, KeyboardInterrupt):
        say(f"job {job[:12]} goes on: colonnade job watch {job[:12]}, or job cancel")
        raise
    if last is None:
        raise StoreFailed("the coordinator said nothing of the job")
    if as_json:
        print(json.dumps(view_as_json(last)))
    print_notes(last.notes, as_json=as_json)
    if last.state != "finished":
        raise JobEnded(f"job {last.job_id[:12]} {last.state}: {why(last)}")
    return 0


def why(view: JobView) -> str:
    """Describe why a job ended early, what it has cost, and what to do."""
    told = [view.reason or "no reason was given"]
    if any(party.spent_units for party in view.parties):
        told.append(f"what was spent stays spent ({cost(view)})")
    if view.advice:
        told.append(f"{view.advice}, then: colonnade job retry {view.job_id[:12]}")
    return "; ".join(told)


def cost(view: JobView) -> str:
    """Return what a job has cost so far."""
    unit = Unit.CLIENT if view.over_clients else Unit.RECORD
    units = unit.joint(party.spent_units for party in view.parties)
    return f"{format_units(units)} {'of a client' if view.over_clients else 'in all'}"


def print_notes(notes: Iterable[str], *, as_json: bool) -> None:
    """Print what the numbers alone do not."""
    for note in () if as_json else notes:
        print(f"note: {note}")


def print_results(report: JobReport, *, as_json: bool) -> None:
    """Print how good the model is, and who contributed."""
    for line in () if as_json else result_lines(results_of(report.document)):
        print(line)


def tell_scores(client: Client, job: str, *, as_json: bool) -> None:
    """Say where the scores of a finished prediction are; nothing of another job."""
    found = None if as_json else client.report(job).document.get("prediction")
    if found is not None and found["delivered"]:
        count = "1 score is" if found["rows"] == 1 else f"{found['rows']} scores are"
        print(f"{count} at {found['receiver']}: predictions/{job}.csv")


def view_as_json(view: JobView) -> dict[str, object]:
    """Return where a job stands as plain values."""
    return asdict(view) | {"notes": view.notes}
