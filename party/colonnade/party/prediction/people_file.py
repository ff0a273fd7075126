"""The row numbers of people in a file, at a party that was aligned."""

from pathlib import Path

from colonnade.data.dialect import PLAIN, Dialect
from colonnade.party.alignment.people import read_people
from colonnade.party.alignment.store import EndedAlignment
from colonnade.party.data.reading.sources import FileSource


def rows_of_people(
    outcome: EndedAlignment, file: Path, *, dialect: Dialect = PLAIN
) -> tuple[list[int], int]:
    """Return the rows of the people in a file, ascending, and how many of them have none."""
    people = read_people(FileSource(file), outcome.columns, outcome.spec.ids, dialect=dialect)
    found = [outcome.by_id.get(person) for person in people.ids]
    rows = sorted(row for row in found if row is not None)
    return rows, len(found) - len(rows) + people.unusable
