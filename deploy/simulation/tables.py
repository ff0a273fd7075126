"""Write the made-up tables of the simulation's organizations: people.csv and schema.toml for each.

Each organization has a folder of its name under FOLDER. The data are those of `colonnade simulate`,
and with CLIENTS also, for a gateway, those of `colonnade simulate admm`:

    tables.py FOLDER ROWS FEATURES SEED [CLIENTS]
"""

import json
import sys
from pathlib import Path

import numpy as np

from colonnade.simulate.admm.run import Population, people
from colonnade.simulate.data.story import even_split, party_names, sites_of
from colonnade.simulate.data.synthetic import make
from colonnade.simulate.sites import Column, Site

PARTIES, CORRELATION, INFORMATIVE = 3, 0.2, 6
ROWS_PER_CLIENT, CLIENT_FEATURES = 50, 10


def main(folder: Path, rows: int, features: int, seed: int, clients: int = 0) -> None:
    """Write all files."""
    made = make(
        rows,
        even_split(features, PARTIES),
        informative=min(INFORMATIVE, features),
        correlation=CORRELATION,
        seed=seed,
    )
    for site in sites_of(made, party_names(PARTIES), owner=None):
        write(folder / site.party, site)
    if clients:
        (gateway,) = people(Population(clients, ROWS_PER_CLIENT, CLIENT_FEATURES, seed=seed)).sites
        write(folder / "gateway", gateway)


def write(folder: Path, site: Site) -> None:
    """Write one organization's file and schema."""
    columns = [*site.features, *([] if site.label is None else [site.label])]
    table = np.column_stack([column.values for column in columns])
    names, forms = [column.name for column in columns], ["%.5g"] * len(columns)
    if site.clients is not None:
        table = np.column_stack([site.clients, table])
        names, forms = ["client", *names], ["%d", *forms]
    head = ",".join(names)
    np.savetxt(folder / "people.csv", table, forms, ",", header=head, comments="")
    blocks = [] if site.clients is None else ['client = "client"\n']
    blocks += [block("[[feature]]", column) for column in site.features]
    if site.label is not None:
        blocks.append(block("[label]", site.label))
    (folder / "schema.toml").write_text("\n".join(blocks), "utf-8")


def block(head: str, column: Column) -> str:
    """Return a column's part of the schema."""
    low, high = column.bounds.low, column.bounds.high
    return f"{head}\nname = {json.dumps(column.name)}\nlow = {low!r}\nhigh = {high!r}\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]), *(int(each) for each in sys.argv[2:]))
