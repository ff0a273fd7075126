"""Write the made-up files of the simulation's organizations, those of `colonnade demo`.

Each organization has a folder of its name under FOLDER and gets its people.csv, the schema that
somebody there completed, and the hospital the patients that it will want scored. With CLIENTS also,
for a gateway, the clients of `colonnade simulate admm`:

    tables.py FOLDER PEOPLE SEED [CLIENTS]
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from colonnade.party.data.reading.suggest import suggest
from colonnade.simulate.admm.run import Population, people
from colonnade.simulate.demo.tables import (
    ID_COLUMNS,
    LABEL,
    complete_schema,
    make_people,
    write_tables,
)
from colonnade.simulate.sites import Site, SiteColumn

ROWS_PER_CLIENT, CLIENT_FEATURES = 50, 10
SCORED = 300
LABEL_OWNER = "hospital"


def main(folder: Path, count: int, seed: int, clients: int = 0) -> None:
    """Write all files, and say what is in them."""
    print("Three organizations, three files")
    with TemporaryDirectory() as made:
        listed = write_tables(Path(made), make_people(count, seed), seed)
        for party, persons in listed.items():
            desk = folder / party
            (desk / "people.csv").write_bytes((Path(made) / f"{party}.csv").read_bytes())
            label = LABEL if party == LABEL_OWNER else None
            draft = suggest(desk / "people.csv", ids=(ID_COLUMNS[party],), label=label)
            (desk / "schema.toml").write_text(draft.text, "utf-8")
            complete_schema(desk / "schema.toml")
            print(f"   {party}: {len(persons):,} people, in an order of its own")
    tonight = [f"P-{each:05}" for each in listed[LABEL_OWNER][:SCORED]]
    lines = "\n".join([ID_COLUMNS[LABEL_OWNER], *tonight])
    (folder / LABEL_OWNER / "tonight.csv").write_text(lines + "\n", "utf-8")
    print(f"   who is in which file is private; the label, {LABEL}, is the {LABEL_OWNER}'s alone")
    if clients:
        (gateway,) = people(Population(clients, ROWS_PER_CLIENT, CLIENT_FEATURES, seed=seed)).sites
        write_clients(folder / "gateway", gateway)


def write_clients(folder: Path, site: Site) -> None:
    """Write the gateway's file and schema."""
    columns = [*site.features, *([] if site.label is None else [site.label])]
    table = np.column_stack([site.clients, *(column.values for column in columns)])
    names, forms = (
        ["client", *(column.name for column in columns)],
        ["%d"] + ["%.5g"] * len(columns),
    )
    np.savetxt(folder / "people.csv", table, forms, ",", header=",".join(names), comments="")
    blocks = ['client = "client"\n', *(block("[[feature]]", column) for column in site.features)]
    blocks.append(block("[label]", site.label))
    (folder / "schema.toml").write_text("\n".join(blocks), "utf-8")


def block(head: str, column: SiteColumn) -> str:
    """Return a column's part of the schema."""
    low, high = column.bounds.low, column.bounds.high
    return f"{head}\nname = {json.dumps(column.name)}\nlow = {low!r}\nhigh = {high!r}\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]), *(int(each) for each in sys.argv[2:]))
