"""What ``colonnade fit`` reads: the solver's settings and the table."""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colonnade.core.table import Table
    from colonnade.optim.solvers.fitting import Table as Rows
    from colonnade.optim.solvers.solve import Solver


def make_solver(name: str, settings: list[str]) -> "Solver":
    """Make the solver; a setting's value is a whole number, a number, true, false or a word."""
    from dataclasses import fields

    from colonnade.optim.solvers.solve import SOLVERS

    kind = SOLVERS[name]
    known = {field.name: type(field.default) for field in fields(kind)}  # type: ignore[arg-type]
    chosen: dict[str, Any] = {}
    for setting in settings:
        key, _, text = setting.partition("=")
        if key not in known:
            raise ValueError(f"solver {name} has no setting {key!r}; it has {', '.join(known)}")
        try:
            read: Callable[[str], Any] = json.loads if known[key] is bool else known[key]
            chosen[key] = read(text)
        except ValueError:
            raise ValueError(f"setting {key} must be of type {known[key].__name__}") from None
        if isinstance(chosen[key], int | float) and not 0 <= chosen[key] < float("inf"):
            raise ValueError(f"setting {key} must be finite and not negative")
    return kind(**chosen)


@contextmanager
def open_table(arguments: argparse.Namespace) -> "Iterator[Table]":
    """Open an ingested table, or ingest a file into a private folder for the time of the fit."""
    import tempfile

    from colonnade.core.errors import BadInput
    from colonnade.core.schema import load_schema
    from colonnade.core.table import COARSE_NAME, Table
    from colonnade.party.ingest import ingest
    from colonnade.party.sources import FileSource

    if arguments.data.is_dir():
        table = Table.open(arguments.data / COARSE_NAME)
        table.verify()
        yield table
        return
    if arguments.schema is None:
        raise BadInput(f"{arguments.data}: a file needs --schema, which declares the bounds")
    with tempfile.TemporaryDirectory(prefix="colonnade-fit-") as folder:  # mode 0700
        summary = ingest(
            load_schema(arguments.schema), FileSource(arguments.data), out=Path(folder)
        )
        yield Table.open(summary.coarse)


def solver_rows(table: "Table", *, classes: bool, intercept: bool) -> "Rows":
    """Return the table as the solvers read it."""
    import numpy as np

    from colonnade.core.errors import BadInput
    from colonnade.core.fixedpoint import GRID
    from colonnade.optim.solvers.design import DenseDesign, design_units
    from colonnade.optim.solvers.fitting import Table as Rows

    if table.label is None:
        raise BadInput(f"{table.path}: there is no label; declare it in the schema's [label]")
    n_features = len(table.names)
    columns = np.empty((n_features + int(intercept), table.n_rows), np.int16)
    columns[:n_features], columns[n_features:] = table.columns, GRID
    label = np.where(table.label > 0, 1.0, -1.0) if classes else table.label / GRID
    return Rows(
        design=DenseDesign(columns, design_units(table.bounds, intercept=intercept)),
        bounds=table.bounds,
        label=label,
        label_bounds=None if classes else table.header.columns[-1].bounds,
        intercept=intercept,
    )
