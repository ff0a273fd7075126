"""``colonnade party fit``: a private linear model on the party's own table, as a job of its own."""

import argparse
from contextlib import closing
from pathlib import Path

from colonnade.cli.fit.input import add_fit_options, check_place, fit_errors, read_order
from colonnade.cli.fit.output import finish
from colonnade.cli.progress import counter
from colonnade.ledger.create import open_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.data.dataset import open_dataset
from colonnade.party.fit import fit_charged
from colonnade.party.fit_order import party_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Fits a linear model on the party's own table, for its own use: no coordinator is asked or "
        "informed. Every release is charged to the party's ledger before it is computed, beside "
        "the federation's jobs, and stored; the same command again goes on where it stopped, or "
        "replays, and costs nothing more. Uses the bounds that the party bought, if any. The "
        "ledger serves one process at a time: stop 'party run' meanwhile."
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the table")
    parser.add_argument("--ledger", type=Path, required=True, help="ledger folder")
    parser.add_argument(
        "--declared", action="store_true", help="use the declared bounds, not the bought ones"
    )
    add_fit_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Fit the model and write what it leaves behind."""
    with fit_errors(arguments):
        order = read_order(arguments, noise="exact")
        with (
            closing(open_ledger(LedgerFiles(arguments.ledger, arguments.mirror))) as ledger,
            open_dataset(arguments.data) as dataset,
        ):
            table = party_table(dataset, ledger, declared=arguments.declared)
            fit = table.resolve(order, charged=True)
            check_place(arguments.out, job_id=fit.job_id)
            with counter(fit.resolved.steps, what="fit") as show:
                made = fit_charged(fit, ledger, bind_reason=arguments.bind, progress=show)
    return finish(arguments, fit, made)
