"""``colonnade party bounds``: buy tighter bounds for the columns of a party's table."""

import argparse
import json
from contextlib import closing
from pathlib import Path
from typing import Any

from colonnade.cli.amounts import (
    amount_as_json,
    delta_of,
    format_amount,
    units_of,
    with_stated_epsilon,
)
from colonnade.cli.parser import WrongUsage
from colonnade.cli.progress import bar
from colonnade.cli.text import names_from
from colonnade.core.errors import EXIT_OK, BudgetExceeded
from colonnade.ledger.create import open_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.config import load_config
from colonnade.party.data.bounding.bounds import BoughtBounds, buy_bounds
from colonnade.party.data.dataset import open_dataset
from colonnade.party.engine.base import Engine
from colonnade.party.engine.local import LOCAL
from colonnade.privacy.accounting import Budget
from colonnade.privacy.sampling import OsNoise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Noise is proportional to the width of a column's bounds, and declared bounds are usually "
        "wide. This buys tighter ones: the 5 % and 95 % points of columns, from noisy counts, "
        "widened by half their distance. They are bought once for a column of an ingested table "
        "and serve all jobs; asking again is free, and other columns can be added later. A "
        "coordinator learns of columns that the policy lets take part."
    )
    parser.add_argument(
        "--config", type=Path, help="the party's file, which names table, ledger and mirror"
    )
    parser.add_argument("--data", type=Path, help="folder of the table")
    parser.add_argument("--ledger", type=Path, help="ledger folder")
    parser.add_argument("--mirror", type=Path, help="head mirror, if kept outside the folder")
    price = parser.add_mutually_exclusive_group(required=True)
    price.add_argument("--rho", type=float, help="most to pay, as rho")
    price.add_argument("--epsilon", type=float, help="most to pay, as epsilon with --delta")
    parser.add_argument("--delta", type=float, help="default min(1e-6, 1 / (10 rows))")
    parser.add_argument(
        "--columns",
        type=names_from,
        metavar="NAME[,NAME]",
        help="default: all features of the table",
    )
    parser.add_argument("--label", action="store_true", help="bounds for the label too")


def run(arguments: argparse.Namespace) -> int:
    """Buy the bounds and show them."""
    files = _complete(arguments)
    units_of(arguments, "price")  # what no table allows is refused before one is opened
    try:
        with (
            closing(open_ledger(files)) as ledger,
            open_dataset(arguments.data) as dataset,
            closing(_engine(arguments)) as engine,
        ):
            n_rows = dataset.coarse.n_rows
            units = units_of(arguments, "price", n_rows)
            arguments.delta = delta_of(arguments, n_rows)
            before = ledger.budget().spent
            bought = buy_bounds(
                dataset,
                ledger,
                Gate(ledger, OsNoise()),
                units=units,
                columns=arguments.columns,
                label=arguments.label,
                progress=lambda steps: bar(steps, what="bounds"),
                engine=engine,
            )
            budget, reserved = ledger.budget(), ledger.state.reserved.get("", 0)
    except BudgetExceeded as error:
        raise BudgetExceeded(with_stated_epsilon(error, arguments)) from None
    shown = _to_json(bought, budget, before=before, reserved=reserved, delta=arguments.delta)
    print(json.dumps(shown) if arguments.json else _to_text(shown))
    return EXIT_OK


def _engine(arguments: argparse.Namespace) -> Engine:
    """Return the engine of the party's file; without one, this machine."""
    return LOCAL if arguments.config is None else load_config(arguments.config).open_engine()


def _complete(arguments: argparse.Namespace) -> LedgerFiles:
    """Take from the party's file what the options leave out; return where the ledger is."""
    if arguments.config is not None:
        config = load_config(arguments.config)
        arguments.data = arguments.data or config.data
        if arguments.ledger is None:
            return LedgerFiles(config.ledger.folder, arguments.mirror or config.mirror)
    if arguments.data is None or arguments.ledger is None:
        raise WrongUsage("say --config, or --data and --ledger")
    return LedgerFiles(arguments.ledger, arguments.mirror)


def _to_json(
    bought: BoughtBounds, budget: Budget, *, before: int, reserved: int, delta: float
) -> dict[str, Any]:
    """Return what was bought as plain values; all of it is public."""

    def amount(units: int) -> dict[str, float]:
        return amount_as_json(units, delta)

    return {
        "dataset": bought.version,
        "columns": [
            {
                "name": column.name,
                "role": column.role,
                "declared": [column.bounds.low, column.bounds.high],
                "bought": [tight.low, tight.high],
            }
            for column, tight in zip(bought.columns, bought.tight, strict=True)
        ],
        "price": amount(bought.price),
        "charged_now": amount(budget.spent - before),
        "left": amount(budget.remaining - reserved),
        "release_bytes": sum(len(release.body) for release in bought.releases),
    }


def _to_text(shown: dict[str, Any]) -> str:
    """Lay the bounds out as a small table."""

    def told(amount: dict[str, Any], *, left: bool = False) -> str:
        return format_amount(amount["units"], amount["delta"], left=left)

    width = max(len("column"), *(len(column["name"]) for column in shown["columns"]))
    lines = [
        f"dataset {shown['dataset']}",
        f"  {'column':<{width}}  {'role':<7}  {'declared':>25}  {'bought':>25}  of the width",
    ]
    for column in shown["columns"]:
        (low, high), (tight_low, tight_high) = column["declared"], column["bought"]
        share = (tight_high / 2 - tight_low / 2) / (high / 2 - low / 2)  # halved: no overflow
        declared, bought = f"[{low:g}, {high:g}]", f"[{tight_low:g}, {tight_high:g}]"
        lines.append(
            f"  {column['name']:<{width}}  {column['role']:<7}  {declared:>25}  {bought:>25}"
            f"  {share:>11.3%}"
        )
    now, price = shown["charged_now"], shown["price"]
    lines.append(f"charged  {told(now)}" if now["units"] else "charged  nothing: paid earlier")
    if price["units"] != now["units"]:
        lines.append(f"in all   {told(price)}  for the purchases that these columns were part of")
    return "\n".join([*lines, f"left     {told(shown['left'], left=True)}"])
