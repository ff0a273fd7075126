"""``colonnade fit``: a private linear model on one organization's rows."""

import argparse
from contextlib import closing
from pathlib import Path

from colonnade.cli.fit.input import add_fit_options, check_place, fit_errors, open_table, read_order
from colonnade.cli.fit.output import finish
from colonnade.cli.parser import WrongUsage
from colonnade.cli.progress import counter
from colonnade.ledger.create import open_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.fit import LocalModel, fit_charged, fit_here
from colonnade.party.fit_order import LocalFit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        "Fits a linear model with differential privacy for one row replaced, on rows that are all "
        "in one place, and writes model.json, report.json and report.html. Minimises the mean loss "
        "plus --l1 times the sum of sizes plus --l2 / 2 times the sum of squares of the "
        "coefficients, in the units of the file, each at most --box in size. With --ledger every "
        "release is charged, in full, before it is computed; the same command again replays it and "
        "costs nothing."
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="CSV, Parquet, or the folder of an ingested table"
    )
    parser.add_argument("--schema", type=Path, help="columns, bounds and label of a file (TOML)")
    parser.add_argument(
        "--noise",
        choices=("exact", "fast", "off"),
        default="exact",
        help="fast and off are for experiments and not private",
    )
    parser.add_argument("--ledger", type=Path, help="ledger folder: charge the fit to it")
    add_fit_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Fit the model and write what it leaves behind."""
    charged = arguments.ledger is not None
    if charged and arguments.noise != "exact":
        raise WrongUsage("a ledger accepts exact noise only")
    if not charged and (arguments.bind, arguments.mirror) != (None, None):
        raise WrongUsage("--bind and --mirror need --ledger")
    with fit_errors(arguments):
        order = read_order(arguments, noise=arguments.noise)
        with open_table(arguments) as table:
            fit = table.resolve(order, charged=charged)
            if charged:
                check_place(arguments.out, job_id=fit.job_id)
            made = _fit(arguments, fit)
    return finish(arguments, fit, made)


def _fit(arguments: argparse.Namespace, fit: LocalFit) -> LocalModel:
    if arguments.ledger is None:
        with counter(fit.resolved.steps, what="fit") as show:
            return fit_here(fit, progress=show)
    with (
        closing(open_ledger(LedgerFiles(arguments.ledger, arguments.mirror))) as ledger,
        counter(fit.resolved.steps, what="fit") as show,
    ):
        return fit_charged(fit, ledger, bind_reason=arguments.bind, progress=show)
