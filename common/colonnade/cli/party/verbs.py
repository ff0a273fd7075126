"""The verbs of ``colonnade party``: what an organization does with its own data.

Imports of the package stay inside the handlers, so that ``colonnade --help`` is quick.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from colonnade.cli.party.bind import register_bind
from colonnade.cli.party.bounds import register_bounds
from colonnade.cli.party.fit import register_fit
from colonnade.cli.party.init import register_init
from colonnade.cli.party.run import register_run

if TYPE_CHECKING:
    from colonnade.party.alignment.store import Outcome
    from colonnade.party.data.ingest import IngestSummary
    from colonnade.party.data.sources import Source

LOCAL_ONLY = "local only, never sent"

Subparsers = argparse._SubParsersAction  # noqa: SLF001 (argparse has no public name for it)


def register(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add ``party`` and its verbs to the command line."""
    parser = subparsers.add_parser("party", help="prepare and run an organization's side")
    verbs = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    register_init(verbs)
    _register_ingest(verbs)
    register_bounds(verbs)
    register_fit(verbs)
    register_run(verbs)
    register_bind(verbs)


def _register_ingest(verbs: "Subparsers[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "ingest",
        help="turn a file or a query into the party's table",
        description="Turn a CSV or Parquet file, or the result of a query, into the party's table.",
    )
    parser.add_argument("--schema", type=Path, required=True, help="schema file (TOML)")
    parser.add_argument("--out", type=Path, required=True, help="folder for the table")
    rows = parser.add_mutually_exclusive_group(required=True)
    rows.add_argument(
        "source", metavar="SOURCE", type=Path, nargs="?", help="CSV (plain or gzip) or Parquet"
    )
    rows.add_argument("--query", metavar="SQL", help="one SELECT, over files or --database")
    parser.add_argument(
        "--database", metavar="D", help="DuckDB file or SQLAlchemy URL that --query reads"
    )
    order = parser.add_mutually_exclusive_group()
    order.add_argument("--roster", type=Path, help="agreed people, one id a line, in table order")
    order.add_argument(
        "--alignment",
        metavar="NAME|FILE",
        help="rows that an alignment gave: its file, or the beginning of its name",
    )
    parser.add_argument(
        "--roster-key",
        type=Path,
        metavar="FILE",
        help="hex digits that all parties hold, to compare their rosters by",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_run_ingest, usage_error=parser.error)


def _run_ingest(arguments: argparse.Namespace) -> int:
    import sys

    from tqdm import tqdm

    from colonnade.core.errors import EXIT_OK
    from colonnade.data.schema import load_schema
    from colonnade.party.data.ingest import ingest

    if arguments.database is not None and arguments.query is None:
        arguments.usage_error("--database needs --query")
    summary = ingest(
        load_schema(arguments.schema),
        _source(arguments),
        out=arguments.out,
        roster=arguments.roster,
        roster_key=arguments.roster_key,
        alignment=_alignment(arguments),
        # disable=None: a bar on a terminal, nothing elsewhere.
        progress=lambda columns: tqdm(
            columns, desc="ingest", unit="column", leave=False, file=sys.stderr, disable=None
        ),
    )
    print(_to_json(summary) if arguments.json else _to_text(summary))
    return EXIT_OK


def _alignment(arguments: argparse.Namespace) -> "Outcome | None":
    from colonnade.party.alignment.store import AlignmentFolder, read_outcome

    if arguments.alignment is None:
        return None
    path = Path(arguments.alignment)
    if not path.is_file():
        path = AlignmentFolder.beside(arguments.out).find(arguments.alignment)
    return read_outcome(path)


def _source(arguments: argparse.Namespace) -> "Source":
    from colonnade.party.data.sources import FileSource, QuerySource

    if arguments.query is None:
        return FileSource(arguments.source)
    return QuerySource(arguments.query, database=arguments.database)


def _to_json(summary: "IngestSummary") -> str:
    import json
    from dataclasses import asdict

    return json.dumps(asdict(summary) | {"note": LOCAL_ONLY}, default=str)


def _clients(summary: "IngestSummary") -> list[str]:
    if not summary.n_clients:
        return []
    spelled = f", {summary.n_respelled} of them written in more than one way"
    return [f"{summary.n_clients} clients{spelled if summary.n_respelled else ''} ({LOCAL_ONLY})"]


def _to_text(summary: "IngestSummary") -> str:
    """Lay the counts out as a small table."""
    width = max(len("column"), *(len(column.name) for column in summary.columns))
    how = "zero rows" if summary.alignment and "roster" not in summary.alignment else "filled"
    absent = f", {summary.n_absent} of them absent and {how}" if summary.n_absent else ""
    matched = (
        f"people: {summary.n_rows - summary.n_absent} matched, {summary.n_absent} absent, "
        f"{summary.n_left_out} rows left out ({LOCAL_ONLY})"
    )
    ordered = summary.alignment or summary.n_absent or summary.n_left_out
    lines = [
        f"{summary.coarse}: {summary.n_rows} rows{absent}, {len(summary.columns)} columns",
        *([matched] if ordered else []),
        *_clients(summary),
        f"Values changed ({LOCAL_ONLY}):",
        f"  {'column':<{width}}  {'role':<7}  {'clipped':>10}  {'missing':>10}",
    ]
    for column in summary.columns:
        counts = f"{column.n_clipped:>10}  {column.n_missing:>10}"
        lines.append(f"  {column.name:<{width}}  {column.role:<7}  {counts}")
    return "\n".join(lines)
