"""``colonnade ledger show``: cap, spending and releases, also while a party runs."""

import argparse
import json

from colonnade.cli.amounts import add_delta, delta_of
from colonnade.cli.ledger.place import add_place, files_of
from colonnade.cli.ledger.summary import as_json, describe, print_summary, time_of
from colonnade.ledger.export import summarise
from colonnade.ledger.storage.snapshot import read_snapshot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Show what the ledger durably says, fully checked. Nothing is locked or written, so a "
        "running party is not disturbed."
    )
    add_place(parser)
    add_delta(parser, "for epsilon; ")
    parser.add_argument("--entries", action="store_true", help="also list every entry")


def run(arguments: argparse.Namespace) -> int:
    """Show the ledger."""
    delta = delta_of(arguments)
    found = read_snapshot(files_of(arguments))
    summary, entries = (
        summarise(found.state, found.person),
        [json.loads(line) for line in found.lines],
    )
    if arguments.json:
        shown = as_json(summary, delta)
        shown |= {"as_of": entries[-1]["time"], "unconfirmed_entries": found.newer}
        print(json.dumps(shown | ({"entries_listed": entries} if arguments.entries else {})))
        return 0
    print_summary(summary, delta)
    print(f"  as of      entry {summary.entries}, {time_of(entries[-1])}")
    if found.newer:
        print(f"  and {found.newer} newer, not confirmed by the head mirror yet: not counted above")
    if arguments.entries:
        print("\nentries")
        for entry in entries:
            print(f"  {describe(entry)}")
    return 0
