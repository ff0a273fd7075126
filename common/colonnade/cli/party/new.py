"""``colonnade party new``: make an organization's folder, and say what is left to do."""

import argparse
import json
from pathlib import Path

from colonnade.core.errors import EXIT_OK, BadInput
from colonnade.party.enrol import CONFIG, POLICY, SCHEMA, Enrolment, Source, new_folder
from colonnade.pki.identity import Identity

DESCRIPTION = (
    "Makes the folder of a party: key, request for a certificate, policy and configuration and,"
    " from --data, a draft of the schema. The key never leaves the folder, and nothing is sent."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = DESCRIPTION
    parser.add_argument("name", help="the party's name in the federation")
    parser.add_argument("--federation", required=True, help="the federation's name")
    parser.add_argument(
        "--coordinator", required=True, metavar="HOST:PORT", help="where the coordinator listens"
    )
    parser.add_argument("--hub", default="hub", help="the coordinator's name (default hub)")
    parser.add_argument("--data", type=Path, help="file with the people: CSV or Parquet")
    parser.add_argument(
        "--id",
        action="append",
        default=[],
        metavar="COLUMN",
        help="what tells people apart; several columns are joined; default: one called id, "
        "person, patient, member or customer, with or without no or id behind it",
    )
    parser.add_argument(
        "--id-rule",
        action="append",
        default=[],
        metavar="RULES",
        help="how one id column is written, once for each, as the parties agreed: plain (default), "
        "fold-case, digits-only, number, no-trim, nfc, as-is, joined by commas",
    )
    parser.add_argument("--label", metavar="COLUMN", help="the label, where it is held")
    parser.add_argument("--folder", type=Path, help="folder to make; default: the party's name")


def run(arguments: argparse.Namespace) -> int:
    """Make the folder."""
    federation, name = arguments.federation, arguments.name
    if arguments.data is None and (arguments.id or arguments.label):
        raise BadInput("--id and --label name columns of a file: give --data too")
    party = Identity(federation, "party", name)
    hub = Identity(federation, "coordinator", arguments.hub)
    source = None
    if arguments.data is not None:
        source = Source(arguments.data, tuple(arguments.id), arguments.label)
    folder = arguments.folder or Path(name)
    enrolment = Enrolment(party, hub, arguments.coordinator, tuple(arguments.id_rule))
    made = new_folder(folder, enrolment, source)
    if arguments.json:
        facts = {
            "identity": party.uri,
            "folder": str(folder),
            "request": str(made.request),
            "fingerprint": made.fingerprint,
            "bounds_to_decide": made.bounds_to_decide,
        }
        print(json.dumps(facts))
        return EXIT_OK
    print(f"made {folder}/ for {party.uri}")
    print(f"  {made.request.name:<13} to be approved; fingerprint {made.fingerprint}")
    if source is not None:
        print(f"  {SCHEMA:<13} what the table holds: a draft, nothing is public until you say so")
    print(f"  {POLICY:<13} who may ask for what; alignments and jobs of {hub.uri}")
    print(f"  {CONFIG:<13} where everything is")
    print("Two things are left to do:")
    print(f"  1. Send {made.request} to the federation's operator, and read the fingerprint out")
    print("     by telephone. What comes back finishes the folder:")
    print(f"       colonnade party join {name}.pem --folder {folder} --epsilon CAP")
    if source is None:
        print(f"  2. Write {folder / SCHEMA} (colonnade party suggest drafts it), review {POLICY}.")
    else:
        decide = f"decide {made.bounds_to_decide} bounds ('?')" if made.bounds_to_decide else ""
        also = f"{decide} and review what was taken from rows" if decide else "review it"
        print(f"  2. Open {folder / SCHEMA}: {also};")
        print(f"     review {folder / POLICY}: colonnade party policy shows what it allows.")
    return EXIT_OK
