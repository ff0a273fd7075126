"""``colonnade party bind``: say that other rows are about the people whom a ledger pays for."""

import argparse
import json
from contextlib import closing
from pathlib import Path

from colonnade.core.errors import NotBound
from colonnade.ledger.create import open_ledger
from colonnade.party.config import load_config
from colonnade.party.data.binding import Comparison, bind, rows_of
from colonnade.party.data.dataset import open_dataset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Says that the table in the data folder, a new extract, is about the people whom the "
        "ledger pays for: what was spent stays spent. Also lets a ledger take over a table that "
        "another one was used with. The reason becomes an entry of the ledger. If the rows are of "
        "clients, shows how many of them the ledger knows, and refuses if most are new: then their "
        "ids are written differently, and each would have a second budget."
    )
    parser.add_argument("--config", type=Path, required=True, help="the party's file (TOML)")
    parser.add_argument("--reason", required=True, help="why, for the record")
    parser.add_argument(
        "--force", action="store_true", help="bind although clients or their rule differ"
    )


def run(arguments: argparse.Namespace) -> int:
    """Bind the ledger to the table."""
    config = load_config(arguments.config)
    with closing(open_ledger(config.ledger)) as ledger, open_dataset(config.data) as dataset:
        try:
            found = bind(
                rows_of(dataset),
                ledger,
                reason=arguments.reason,
                clients=dataset.clients,
                force=arguments.force,
            )
        except NotBound as error:
            raise NotBound(f"{error}; or add --force") from None
        bound, version = ledger.state.bound, dataset.version
    other = "" if bound is None else bound.other_ledger
    if arguments.json:
        print(json.dumps({"dataset": version, "other_ledger": other, "clients": _counts(found)}))
        return 0
    print(f"the ledger goes on with dataset {version}; what was spent stays spent")
    if other:
        print(f"  the table was used with ledger {other}, whose spending is not counted here")
    for name, count in (_counts(found) or {}).items():
        print(f"  {count:>7} clients {name} (local only, never sent)")
    return 0


def _counts(found: Comparison | None) -> dict[str, int] | None:
    if found is None:
        return None
    return {"known": found.known, "new": found.new, "vanished": found.vanished}
