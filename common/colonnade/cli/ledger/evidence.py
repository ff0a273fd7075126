"""``colonnade ledger evidence``: one signed file for an auditor, and a page beside it."""

import argparse
import json
from pathlib import Path

from colonnade.cli.amounts import add_delta, delta_of
from colonnade.cli.whole_file import whole_file
from colonnade.core.errors import BadInput
from colonnade.ledger.bundle import bundle_lines
from colonnade.ledger.export import verify_lines
from colonnade.ledger.receipts import ledger_key_from_file
from colonnade.ledger.storage.snapshot import read_snapshot
from colonnade.party.config import load_config
from colonnade.party.officer.page import evidence_page
from colonnade.party.vault.meter import read_log


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Write every specification that was seen, every decision, charge and policy, receipts and "
        "the log of what left to one file, signed by the ledger's key; 'ledger verify' checks it "
        "anywhere. A page of the same name beside it is for reading. A running party is not "
        "disturbed."
    )
    parser.add_argument("--config", type=Path, required=True, help="the party's configuration file")
    parser.add_argument("--out", type=Path, required=True, help="file to write, such as a.jsonl")
    add_delta(parser, "for epsilon; ")


def run(arguments: argparse.Namespace) -> int:
    """Write the evidence."""
    delta, out = delta_of(arguments), arguments.out
    page, config = out.with_suffix(".html"), load_config(arguments.config)
    if out == page:
        raise BadInput("--out ends in .html, as the page beside it does; name it otherwise")
    if out.resolve().is_relative_to(config.ledger.folder.resolve()):
        raise BadInput(f"{out} lies in the ledger's folder; name another place")
    found = read_snapshot(config.ledger)
    log = [line._asdict() for line in read_log(config.uplink_log)]
    lines = list(bundle_lines(found, ledger_key_from_file(config.ledger.key), log))
    verified = verify_lines(lines)  # what is handed out has been checked
    for path, text in ((out, "\n".join(lines) + "\n"), (page, evidence_page(verified, delta))):
        try:
            with whole_file(path) as file:
                file.write(text)
        except OSError as error:
            raise BadInput(f"{path} cannot be written: {error.strerror}; name another") from None
    counts = {"entries": len(verified.lines), "attached": verified.attached.lines}
    if arguments.json:
        print(json.dumps({"out": str(out), "page": str(page), **counts}))
    else:
        print(f"wrote {out} and {page}: {counts['entries']} entries, signed")
    return 0
