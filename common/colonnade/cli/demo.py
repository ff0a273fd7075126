"""``colonnade demo``: one party's privacy core at work, on a table made up on the spot."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from colonnade.core.arrays import IntArray
    from colonnade.core.table import Table
    from colonnade.privacy.gate import Gate

_FEATURES = ("age", "systolic_bp", "bmi", "glucose", "creatinine", "visits")
_SCHEMA = """id = "person"

[[feature]]
name = "age"
low = 18
high = 100

[[feature]]
name = "systolic_bp"
low = 80
high = 220

[[feature]]
name = "bmi"
low = 12
high = 60

[[feature]]
name = "glucose"
low = 2
high = 14

[[feature]]
name = "creatinine"
low = 20
high = 150

[[feature]]
name = "visits"
low = 0
high = 10

[label]
name = "cost"
low = 0
high = 10000
"""


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo", help="ingest a small table, select and share through the gate, print the ledger"
    )
    parser.add_argument("--rows", type=int, default=20_000, help="people; default 20000")
    parser.add_argument("--epsilon", type=float, default=1.0, help="the party's cap; default 1")
    parser.add_argument("--keep", type=Path, help="folder to keep the files in; else removed")
    parser.set_defaults(handler=_demo)


def _demo(arguments: argparse.Namespace) -> int:
    import tempfile

    from colonnade.core.errors import BadInput

    if not 10 <= arguments.rows <= 10**7:
        raise BadInput("--rows must lie between 10 and 10000000")
    if arguments.keep is not None and arguments.keep.exists():
        raise BadInput(f"{arguments.keep} exists already; name a new folder")
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True)
        return _run(arguments.keep, arguments.rows, arguments.epsilon)
    with tempfile.TemporaryDirectory(prefix="colonnade-demo-") as folder:
        return _run(Path(folder), arguments.rows, arguments.epsilon)


def _run(folder: Path, rows: int, epsilon: float) -> int:
    from colonnade.cli.main import main
    from colonnade.core.table import COARSE_NAME, Table
    from colonnade.privacy.accounting import default_delta
    from colonnade.privacy.files import LedgerFiles
    from colonnade.privacy.founding import open_ledger
    from colonnade.privacy.gate import Gate
    from colonnade.privacy.sampling import OsNoise

    print(f"1. A hospital has a table of {rows} people; here it is made up.")
    _write_table(folder, rows)
    print("\n2. It is ingested: clipped to public bounds, stored as 16-bit fixed point.")
    ingest = ["party", "ingest", "--schema", f"{folder}/schema.toml", "--out", f"{folder}/data"]
    if code := main([*ingest, f"{folder}/people.csv"]):
        return code
    print("\n3. The hospital sets a cap, which lives in a ledger on its own disk.")
    delta = default_delta(rows)
    cap = ["--epsilon", str(epsilon), "--delta", str(delta)]
    if code := main(["party", "init", "--ledger", f"{folder}/ledger", "--name", "hospital", *cap]):
        return code
    table = Table.open(folder / "data" / COARSE_NAME)
    ledger = open_ledger(LedgerFiles(folder / "ledger"))
    print("\n4. Two rounds: a feature is chosen privately, then its noisy sketch is shared.")
    _rounds(Gate(ledger, OsNoise()), table, budget=ledger.budget().remaining)
    ledger.close()
    print("\n5. The ledger, verified from end to end:")
    if code := main(["ledger", "verify", f"{folder}/ledger", "--delta", str(delta)]):
        return code
    print("\n6. An auditor gets an export and recomputes every price from it alone:")
    export = f"{folder}/ledger.export"
    return main(["ledger", "export", f"{folder}/ledger", "--out", export]) or main(
        ["ledger", "verify", export, "--delta", str(delta)]
    )


def _write_table(folder: Path, rows: int) -> None:
    import numpy as np

    draw = np.random.default_rng(7)  # made-up people, not noise
    age = draw.normal(55, 18, rows)
    glucose = draw.gamma(6, 1, rows)
    columns = [
        age,
        draw.normal(110 + 0.4 * age, 14),
        draw.normal(27, 5, rows),
        glucose,
        draw.gamma(9, 9, rows),
        draw.poisson(4, rows).astype(float),
    ]
    cost = 40 * age + 500 * glucose + draw.normal(0, 800, rows)
    header = ",".join(("person", *_FEATURES, "cost"))
    body = np.column_stack([np.arange(rows), *columns, cost])
    np.savetxt(folder / "people.csv", body, delimiter=",", fmt="%.6g", header=header, comments="")
    (folder / "schema.toml").write_text(_SCHEMA)


def _rounds(gate: "Gate", table: "Table", *, budget: int) -> None:
    import numpy as np

    from colonnade.core.fixedpoint import GRID
    from colonnade.optim.kernels import score
    from colonnade.optim.sketch import SparseSketch
    from colonnade.privacy.accounting import rho_from_units
    from colonnade.privacy.entries import ReleaseKey
    from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection

    # |score change| when one row is replaced: two products of numbers up to GRID.
    select = SignedSelection.within(budget // 8, sensitivity=2 * GRID * GRID)
    sketch = SparseSketch(b"demo", table.n_rows, 512)
    share = DiscreteGaussian.within(
        budget // 8, l2_sensitivity2=(2 * GRID) ** 2 * sketch.column_norm2
    )
    residual = np.asarray(table.label)
    for round_ in range(2):
        picked = gate.release(
            ReleaseKey("demo", round_, "select"),
            b"select",
            select,
            lambda: score(table.columns, residual),  # noqa: B023 - called now
        )
        feature, sign = np.frombuffer(picked.body, "<i8")
        name = table.names[feature]
        print(f"   round {round_}: chose {'+' if sign > 0 else '-'}{name}", end="")
        print(f" for rho {rho_from_units(select.cost):.4g}, {len(picked.body)} bytes")
        shared = gate.release(
            ReleaseKey("demo", round_, "share"),
            b"share",
            share,
            lambda: sketch.apply(table.columns[feature : feature + 1])[0],  # noqa: B023 - called now
        )
        print(f"            shared its sketch for rho {rho_from_units(share.cost):.4g}", end="")
        print(f", {len(shared.body)} bytes")
        again = gate.release(ReleaseKey("demo", round_, "share"), b"share", share, _never)
        print(f"            asked again: same bytes {again.body == shared.body}, no new charge")
        # Row by row, and clipped last: the sensitivity stays what it was.
        moved = residual.astype(np.int64) - sign * table.columns[feature].astype(np.int64) // 2
        residual = np.clip(moved, -GRID, GRID).astype(np.int16)


def _never() -> "IntArray":
    raise AssertionError("a replay must not read the data")
