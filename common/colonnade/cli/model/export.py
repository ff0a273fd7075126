"""``colonnade export``: a model for other programs and other readers."""

import argparse
import json
import sys
from pathlib import Path

from colonnade.cli.parser import WrongUsage
from colonnade.cli.run_folder import file_errors
from colonnade.core.config import parse_json, read_text
from colonnade.core.errors import EXIT_OK, BadInput
from colonnade.data.export.onnx import to_onnx
from colonnade.data.export.sql import DIALECTS, partial_score, score_script
from colonnade.data.model import load_model
from colonnade.report.card import to_card

_FORMATS = ("sql", "onnx", "card")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        "Write a model for other programs: each organization's part of a score as a SQL"
        " expression over its own raw columns (the same integers as predict), an ONNX graph (needs"
        " colonnade[onnx]), or a model card in Markdown from the run's report."
    )
    parser.add_argument("run", type=Path, help="a run's folder, or its model.json or report.json")
    parser.add_argument("--format", choices=_FORMATS, required=True)
    parser.add_argument("--party", help="sql: this party's bare expression alone")
    parser.add_argument("--dialect", choices=tuple(DIALECTS), default="duckdb", help="of SQL")
    parser.add_argument("--out", type=Path, help="file to write; default: standard output")


def run(arguments: argparse.Namespace) -> int:
    """Write what was asked for."""
    if arguments.party is not None and arguments.format != "sql":
        raise WrongUsage("--party goes with --format sql")
    if arguments.out is None and (arguments.json or arguments.format == "onnx"):
        raise WrongUsage("name a file to write: --out")
    content = _content(arguments)
    if arguments.out is None:
        sys.stdout.write(content.decode())
        return EXIT_OK
    if arguments.out.exists():
        raise BadInput(f"{arguments.out} exists already; name a new file")
    with file_errors(arguments.out):
        arguments.out.write_bytes(content)
    told = {"format": arguments.format, "out": str(arguments.out)}
    print(json.dumps(told) if arguments.json else f"wrote {arguments.out}")
    return EXIT_OK


def _content(arguments: argparse.Namespace) -> bytes:
    if arguments.format == "card":
        path = _file(arguments.run, "report.json")
        document = parse_json(read_text(path), origin=str(path), expected="a run's report.json")
        try:
            return to_card(document).encode()  # type: ignore[arg-type]
        except (AttributeError, KeyError, TypeError, ValueError):
            raise BadInput(f"{path}: not the report.json of a run") from None
    model = load_model(_file(arguments.run, "model.json"))
    if arguments.format == "onnx":
        found: bytes = to_onnx(model).SerializeToString()
        return found
    if arguments.party is not None:
        return f"{partial_score(model, arguments.party, arguments.dialect)}\n".encode()
    return score_script(model, arguments.dialect).encode()


def _file(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path
