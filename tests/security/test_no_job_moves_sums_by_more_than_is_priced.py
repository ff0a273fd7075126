"""Sums of an aligned table's columns move by no more than their noise is made for.

The table has all that could move many columns at once: categories, indicators of missing values, a
person who comes or goes. The coordinator chooses which columns a job has, and their bounds.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.data.schema import parse_schema
from colonnade.data.table import Table, open_pair
from colonnade.linear.sums import sums
from colonnade.methods.groups import moved_columns, moved_or_absent
from colonnade.party.data.columns import columns_for
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource

SCHEMA = """\
[[feature]]
name = "ward"
type = "category"
levels = ["a", "b", "c", "d", "e"]
other = "rest"
missing_indicator = true
[[feature]]
name = "age"
low = 0
high = 100
missing_indicator = true
[[feature]]
name = "kind"
type = "category"
levels = ["x", "y", "z"]
baseline = "x"
fill = "y"
"""
# All that one person can be: nobody, and every mixture of ends, levels and missing values.
PERSONS = [
    None,
    *(f"{w},{a},{k}" for w in ("a", "e", "new", "") for a in ("0", "100", "") for k in ("x", "z")),
]


class Rows:
    """An alignment of three people, of whom a party has one or two."""

    name, n_rows, columns = "a" * 64, 3, ("id",)

    def row_of(self, texts: Sequence[str | None]) -> int | None:
        return {"p0": 0, "p1": 1}.get(texts[0] or "")


def made(folder: Path, person: str | None) -> tuple[Table, Table]:
    folder.mkdir()
    text = "id,ward,age,kind\np0,a,50,x\n" + ("" if person is None else f"p1,{person}\n")
    (folder / "people.csv").write_text(text)
    schema = parse_schema(SCHEMA, origin="schema.toml")
    ingest(schema, FileSource(folder / "people.csv"), out=folder / "data", alignment=Rows())
    return open_pair(folder / "data")


def hostile(declared: Bounds, choice: int) -> Bounds:
    """Return bounds for which the middle, or the lower end, of the declared ones is elsewhere."""
    low, width = declared.low, declared.high - declared.low
    return (
        declared,
        Bounds(low, low + 0.4 * width),
        Bounds(low + 0.6 * width, declared.high),
        Bounds(low - width, declared.high),
        Bounds(low + 0.49 * width, low + 0.51 * width),
    )[choice]


def released(table: tuple[Table, Table], job: dict[str, Bounds], *, presence: bool) -> FloatArray:
    """Return what a party's means are made of, as `party.methods.moments` sums it."""
    held = columns_for(*table, list(job), list(job.values()), None)
    columns = list(held.features)
    if presence:
        assert held.presence is not None
        present = (held.presence > 0).astype(np.int16)
        columns = [*(column * present for column in columns), present * np.int16(GRID)]
    return np.array([sums(column) for column in columns], np.float64).ravel()


@pytest.mark.slow
def test_whoever_one_person_is_sums_move_by_no_more_than_the_price_says(tmp_path: Path) -> None:
    tables = [made(tmp_path / str(at), person) for at, person in enumerate(PERSONS)]
    first, draw = tables[0][0], np.random.default_rng(0)
    declared = dict(zip(first.names, first.bounds, strict=True))
    groups = dict(zip(first.names, first.groups, strict=True))
    worst = {False: 0.0, True: 0.0}
    for _ in range(40):
        chosen = draw.permutation(first.names)[: draw.integers(1, len(first.names) + 1)]
        job = {name: hostile(declared[name], int(draw.integers(5))) for name in map(str, chosen)}
        moved = moved_columns(tuple(job), tuple(groups[name] for name in job))
        for presence in (False, True):
            found = np.array([released(table, job, presence=presence) for table in tables])
            far2 = ((found[:, None] - found[None]) ** 2).sum(axis=2).max()
            count = moved_or_absent(len(job) + 1, moved) if presence else moved
            worst[presence] = max(worst[presence], far2 / ((2 * GRID) ** 2 * count))
    assert max(worst.values()) <= 1.0
    assert min(worst.values()) > 0.9  # so that a smaller price would have been noticed
