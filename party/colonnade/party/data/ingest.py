"""From a source to a table: one row a person, clipped, filled, quantised.

Raw rows pass through a database in a private folder beside the tables, which is removed at the
end; from there some rows at a time come into memory, and go to their places in both tables. A
killed ingest leaves that folder behind, and the next one removes it.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds
from colonnade.data.schema import Column, Schema
from colonnade.data.table import COARSE_NAME, FINE_NAME, TableWriter
from colonnade.data.table_header import PRESENCE, Role, TableColumn, TableHeader
from colonnade.methods.alignment.normalise import IdColumn
from colonnade.party.data.clients import forget_clients, write_clients
from colonnade.party.data.folder import workspace
from colonnade.party.data.order import Roster, RowsById
from colonnade.party.data.quantising import Quantiser
from colonnade.party.data.reading.connection import connect, one_line
from colonnade.party.data.reading.sources import Source, open_source
from colonnade.party.data.reading.staged import StagedColumns
from colonnade.party.data.staging import stage

Progress: TypeAlias = Callable[[Sequence[Any]], Iterable[Any]]
"""Wrap the parts to be written, as ``tqdm`` does."""


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """Count what ingest changed in one column of the schema.

    Parameters
    ----------
    n_other
        Texts that are no declared level of a category and went to its level for the rest.
    """

    name: str
    role: Role
    n_clipped: int
    n_missing: int
    n_other: int = 0


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """Tell the local operator what was ingested.

    Privacy: the counts and the digest are exact facts about the rows. They are data: show them on
    the operator's terminal, never log or send them.

    Parameters
    ----------
    n_absent
        People on the roster, or of the alignment, without a row; what stands for them is not
        counted as missing values.
    n_left_out
        Rows of the source that the roster or the alignment has no place for.
    n_clients, n_respelled
        Clients that the rows are divided among, 0 for none, and those of them whose id is written
        in more than one way.
    """

    coarse: Path
    fine: Path
    n_rows: int
    n_absent: int
    content_digest: str
    columns: tuple[ColumnSummary, ...]
    n_clients: int
    n_respelled: int
    n_left_out: int = 0
    alignment: str = ""


def ingest(
    schema: Schema,
    source: Source,
    *,
    out: Path,
    roster: Path | None = None,
    roster_key: Path | None = None,
    id_rule: IdColumn | None = None,
    alignment: RowsById | None = None,
    progress: Progress = iter,
) -> IngestSummary:
    """Write the rows of ``source`` as a coarse and a fine table in the folder ``out``.

    Parameters
    ----------
    roster
        File of the agreed people, one id a line: the table has their rows in that order, fills
        for absent people, and nothing of anybody else. None keeps all rows in source order.
    roster_key
        File of the key under which parties compare their rosters.
    id_rule
        How ids of the roster and of the source are written before they are compared.
    alignment
        The rows that an alignment gave, instead of a roster: absent people are zero rows.
    """
    if id_rule is not None and roster is None:
        raise BadInput("a rule of ids is for those of a roster; give the roster too")
    if roster_key is not None and roster is None:
        raise BadInput(f"{roster_key}: is the key of a roster; give the roster too")
    if alignment is not None and (roster is not None or schema.client is not None):
        raise BadInput("rows follow an alignment, a roster or clients, not two of them")
    if roster is not None and schema.id is None:
        raise BadInput(f'{roster}: a roster needs the id column; add id = "..." to the schema')
    if roster is not None and schema.client is not None:
        raise BadInput(
            f"{roster}: rows divided among clients need no roster; leave one of them out"
        )
    try:
        with (
            workspace(out) as folder,
            one_line(str(out)),
            connect(folder, n_columns=len(schema.columns)) as database,
        ):
            relation = open_source(database, source, folder=folder, dialect=schema.dialect)
            agreed = None if roster is None else Roster(roster, roster_key, id_rule)
            staged = stage(
                database,
                relation,
                schema=schema,
                roster=agreed,
                alignment=alignment,
                in_place=True,
            )
            name = "" if alignment is None else alignment.name
            if agreed is not None and staged.index is not None:
                agreed.check_first(schema.id or "", matched=bool(staged.index[0] >= 0))
                name = agreed.name()
            return _write(staged, schema, out=out, alignment=name, progress=progress)
    except OSError as error:
        raise BadInput(f"{out}: cannot write the table: {error.strerror}") from None
    except UnicodeEncodeError:
        raise BadInput("a path or the query is not valid UTF-8; rename the file") from None


def _write(
    staged: StagedColumns, schema: Schema, *, out: Path, alignment: str, progress: Progress
) -> IngestSummary:
    """Quantise column after column into both tables and put them in place together."""
    columns, encodings = table_columns(schema), schema.encodings
    if staged.zero_absent:  # also if nobody is absent: whether somebody is, is private
        columns = (*columns, TableColumn(PRESENCE, PRESENCE, Bounds(-1.0, 1.0), 0.0))
    # Random, because anything computed from the rows would release whether they changed. In the
    # headers, because a file beside the tables could be out of step with them after a crash.
    version = secrets.token_hex(16)
    headers = {
        grid: TableHeader(
            schema.digest,
            staged.n_rows,
            columns=columns,
            grid=grid,
            dataset_version=version,
            client_ids="" if schema.client is None else schema.client_ids,
            encodings=tuple(each for each in encodings if not each.plain),
            alignment=alignment,
            n_absent=staged.n_absent,
            n_left_out=staged.n_left_out,
        )
        for grid in (GRID, FINE_GRID)
    }
    coarse_path, fine_path = out / COARSE_NAME, out / FINE_NAME
    with (
        TableWriter(fine_path, headers[FINE_GRID]) as fine,
        TableWriter(coarse_path, headers[GRID]) as coarse,
    ):
        quantiser = Quantiser(schema.columns, coarse, fine, absent=staged.absent)
        quantiser.write(staged.parts(encodings, progress))
        # Both are whole on disk before either is put in place; the digest tells a torn pair.
        digest = coarse.seal(fine_digest=fine.seal())
        if staged.division is not None:
            write_clients(out, version, staged.division.clients)
        fine.publish()
        coarse.publish()
    if staged.division is None:
        forget_clients(out)
    return IngestSummary(
        coarse=coarse_path,
        fine=fine_path,
        n_rows=staged.n_rows,
        n_absent=staged.n_absent,
        content_digest=digest,
        columns=tuple(
            ColumnSummary(
                column.name,
                _role(column, schema),
                n_clipped=counts.clipped,
                n_missing=counts.missing - staged.n_absent,
                n_other=counts.other,
            )
            for column, counts in zip(schema.columns, quantiser.counts, strict=True)
        ),
        n_clients=0 if staged.division is None else len(staged.division.clients),
        n_respelled=0 if staged.division is None else staged.division.n_respelled,
        n_left_out=staged.n_left_out,
        alignment=alignment,
    )


def table_columns(schema: Schema) -> tuple[TableColumn, ...]:
    """Return the columns that a table of ``schema`` stores: features, then the label."""
    made = []
    for column in schema.columns:
        encoding = column.encoding()
        role = _role(column, schema)
        for name, bounds, fill in zip(encoding.names, column.limits(), column.fills(), strict=True):
            made.append(TableColumn(name, role, bounds, fill, encoding.group))
    return tuple(made)


def _role(column: Column, schema: Schema) -> Role:
    return "label" if column is schema.label else "feature"
