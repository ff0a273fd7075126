"""``colonnade party ingest``: turn a file or a query into the party's table."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from colonnade.cli.parser import WrongUsage
from colonnade.cli.progress import bar
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import EXIT_OK
from colonnade.core.text import listed
from colonnade.data.schema import load_schema
from colonnade.methods.alignment.normalise import IdColumn, Repeated, named_rule
from colonnade.party.alignment.store import AlignmentFolder, EndedAlignment, read_outcome
from colonnade.party.config import load_config
from colonnade.party.data.ingest import IngestSummary, ingest
from colonnade.party.data.reading.sources import FileSource, QuerySource, Source
from colonnade.party.policy_file import load_policy

LOCAL_ONLY = "local only, never sent"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Turn a CSV or Parquet file, or the result of a query, into the party's table."
    )
    parser.add_argument(
        "--config", type=Path, help="the party's file, which names source, schema and folder"
    )
    parser.add_argument("--schema", type=Path, help="schema file (TOML)")
    parser.add_argument("--out", type=Path, help="folder for the table")
    rows = parser.add_mutually_exclusive_group()
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
        help="rows that an alignment gave: its file, or the beginning of its name; default with "
        "--config: the one that no other here extends",
    )
    parser.add_argument(
        "--roster-key",
        type=Path,
        metavar="FILE",
        help="hex digits that all parties hold, to compare their rosters by",
    )
    parser.add_argument(
        "--id-rule",
        metavar="RULES",
        help="how ids of roster and source are written before they are compared, as for `party "
        "new`; default: as they are or, with --config, as the policy's [[align]] ids say",
    )


def run(arguments: argparse.Namespace) -> int:
    """Ingest the rows and print what was changed in them."""
    if arguments.database is not None and arguments.query is None:
        raise WrongUsage("--database needs --query")
    people = _complete(arguments)
    summary = ingest(
        load_schema(arguments.schema),
        people if people is not None else _source(arguments),
        out=arguments.out,
        roster=arguments.roster,
        roster_key=arguments.roster_key,
        id_rule=_id_rule(arguments),
        alignment=_alignment(arguments),
        progress=lambda columns: bar(columns, what="ingest", unit="column"),
    )
    if arguments.json:
        print(json.dumps(asdict(summary) | {"note": LOCAL_ONLY}, default=str))
    else:
        print(_to_text(summary))
        if people is not None and not summary.alignment and arguments.roster is None:
            print(
                "The rows are in the order of the source: there is no alignment yet, and no roster "
                "is given. Right only where all parties' sources list the same people in one order."
            )
        if arguments.roster is not None and arguments.roster_key is None:
            print(
                "The roster's order is compared with nobody's: parties that hold one key and give "
                "it with --roster-key are refused if their rosters differ."
            )
    return EXIT_OK


def _complete(arguments: argparse.Namespace) -> Source | None:
    """Take from the party's file what the options leave out; return its source, if it is used."""
    given = arguments.source is not None or arguments.query is not None
    people = None
    if arguments.config is not None:
        config = load_config(arguments.config)
        arguments.out = arguments.out or config.data
        if config.align is not None:
            arguments.schema = arguments.schema or config.align.schema
            people = None if given else config.align.rows
    needed = {
        "--schema": arguments.schema,
        "--out": arguments.out,
        "SOURCE or --query": given or people,
    }
    if lacking := [name for name, value in needed.items() if not value]:
        raise WrongUsage(f"say {', '.join(lacking)}, or --config with an [align] that names them")
    return people


def _id_rule(arguments: argparse.Namespace) -> IdColumn | None:
    """Return how ids are written: the given rule, or that on which the policy's tables agree."""
    named = set[tuple[str, ...]]() if arguments.id_rule is None else {(arguments.id_rule,)}
    if not named and arguments.roster is not None and arguments.config is not None:
        allowed = load_policy(load_config(arguments.config).policy).alignments
        named = {each.ids for each in allowed if each.ids is not None}
    if not named:
        return None
    rules = named.pop()
    if named or len(rules) > 1:
        raise WrongUsage("the policy has several rules of ids; say --id-rule for the roster's")
    try:
        return named_rule(rules, Repeated.REFUSE.value).columns[0]
    except ValueError as error:
        raise BadArgument("id_rule", str(error)) from None


def _alignment(arguments: argparse.Namespace) -> EndedAlignment | None:
    if arguments.alignment is None and arguments.roster is None and arguments.config is not None:
        arguments.alignment = AlignmentFolder.beside(arguments.out).latest()
    if arguments.alignment is None:
        return None
    path = Path(arguments.alignment)
    if not path.is_file():
        path = AlignmentFolder.beside(arguments.out).find(arguments.alignment)
    return read_outcome(path)


def _source(arguments: argparse.Namespace) -> Source:
    if arguments.query is None:
        return FileSource(arguments.source)
    return QuerySource(arguments.query, database=arguments.database)


def _clients(summary: IngestSummary) -> list[str]:
    if not summary.n_clients:
        return []
    spelled = f", {summary.n_respelled} of them written in more than one way"
    return [f"{summary.n_clients} clients{spelled if summary.n_respelled else ''} ({LOCAL_ONLY})"]


def _order(name: str) -> str:
    return name[:19] if name.startswith("roster-") else f"alignment {name[:12]}"


def _to_text(summary: IngestSummary) -> str:
    """Lay the counts out as a small table."""
    width = max(len("column"), *(len(column.name) for column in summary.columns))
    how = "zero rows" if summary.alignment and "roster" not in summary.alignment else "filled"
    absent = f", {summary.n_absent} of them absent and {how}" if summary.n_absent else ""
    matched = (
        f"people: {summary.n_rows - summary.n_absent} matched, {summary.n_absent} absent, "
        f"{summary.n_left_out} rows left out ({LOCAL_ONLY})"
    )
    ordered = summary.alignment or summary.n_absent or summary.n_left_out
    order = [] if not summary.alignment else [f"rows in the order of {_order(summary.alignment)}"]
    lines = [
        f"{summary.coarse}: {summary.n_rows} rows{absent}, {len(summary.columns)} columns",
        *order,
        *([matched] if ordered else []),
        *_clients(summary),
        f"Values changed ({LOCAL_ONLY}):",
        f"  {'column':<{width}}  {'role':<7}  {'clipped':>10}  {'missing':>10}",
    ]
    for column in summary.columns:
        counts = f"{column.n_clipped:>10}  {column.n_missing:>10}"
        lines.append(f"  {column.name:<{width}}  {column.role:<7}  {counts}")
    there = summary.n_rows - summary.n_absent
    if odd := [each.name for each in summary.columns if 2 * each.n_clipped > there]:
        lines.append(
            f"More than half of the values of {listed(odd)} lie outside of the bounds: review "
            "these, and for dates the format (years of two digits end in 2068)."
        )
    return "\n".join(lines)
