"""The table that a simulation starts from: a file, or a frame of any library."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import duckdb

from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput
from colonnade.core.scratch import passing_folder
from colonnade.data.frames import Frame, columns_of, open_frame
from colonnade.data.schema import load_schema
from colonnade.methods.problem import Loss
from colonnade.simulate.data.from_file import FileTable, read_table

Limits = Mapping[str, tuple[float, float]]


def load_table(
    data: Frame | str | Path,
    target: str,
    *,
    loss: str,
    bounds: Limits | None,
    schema: str | Path | None,
    client_column: str | None = None,
) -> FileTable:
    """Read a file or a frame, which is written to a folder that nobody else may read."""
    if bounds is not None and schema is not None:
        raise BadArgument("bounds", "and a schema both declare bounds; give one of them")
    declared = None if bounds is None else _schema_text(bounds, target)
    with passing_folder() as folder, _called_data(folder):
        path = Path(data) if isinstance(data, (str, Path)) else _written(data, folder)
        if declared is not None:
            schema = folder / "schema.toml"
            schema.write_text(declared, "utf-8")
        return read_table(
            path,
            target,
            loss=Loss(loss),
            schema=None if schema is None else load_schema(Path(schema)),
            client_column=client_column,
        )


def _written(frame: Frame, folder: Path) -> Path:
    path = folder / "table.parquet"
    with duckdb.connect() as connection:
        if isinstance(frame, Mapping):
            connection.register("given", columns_of(frame))
            relation = connection.table("given")
        else:
            relation = open_frame(connection, frame)
        relation.write_parquet(str(path))
    return path


@contextmanager
def _called_data(folder: Path) -> Iterator[None]:
    """Name files of the temporary folder in errors by what they are."""
    try:
        yield
    except BadInput as error:
        text = str(error).replace(str(folder / "table.parquet"), "the data")
        raise BadInput(text.replace(str(folder / "schema.toml"), "bounds")) from None


def _schema_text(bounds: Limits, target: str) -> str:
    def block(head: str, name: str) -> str:
        try:
            low, high = map(float, bounds[name])
        except (TypeError, ValueError):
            raise BadArgument("bounds", f"of {name!r} must be a pair (low, high)") from None
        return f"{head}\nname = {json.dumps(name)}\nlow = {low!r}\nhigh = {high!r}\n"

    if not isinstance(bounds, Mapping):
        raise BadArgument("bounds", "must give the pair (low, high) of each column by its name")

    blocks = [block("[[feature]]", name) for name in bounds if name != target]
    if target in bounds:
        blocks.append(block("[label]", target))
    return "\n".join(blocks)
