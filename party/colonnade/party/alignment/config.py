"""``[align]`` of a party's configuration: where the people are that it lists.

A running party reads its people when an alignment asks for them; until then it has no use for the
database engine that reads files, which is imported then. Both of its processes read this, and one
of them never has anything to do with data.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from colonnade.core.config import Strict, Text

if TYPE_CHECKING:
    from colonnade.methods.alignment.normalise import IdRule, PreparedIds
    from colonnade.party.data.reading.sources import Source


class AlignConfig(Strict, frozen=True):
    """Where the people are that a party aligns: ``[align]`` of its configuration."""

    id: tuple[Text, ...]
    source: Path | None = None
    schema: Path | None = None  # says how the file is written: delimiter, encoding
    query: str | None = None
    database: str | None = None

    def __post_init__(self) -> None:
        if (self.source is None) == (self.query is None):
            raise ValueError("give source, a file, or query, one SELECT")
        if self.database is not None and self.query is None:
            raise ValueError("database: belongs to query")
        if self.database is not None and _is_server(self.database):
            raise ValueError(
                "database: names a server, and the half of a party that lists people has no "
                "network; write the list to a file, and give that as source"
            )
        if self.schema is not None and self.source is None:
            raise ValueError("schema: belongs to source")
        if not self.id:
            raise ValueError("id: name the columns that tell people apart")

    @property
    def rows(self) -> "Source":
        """The source."""
        from colonnade.party.data.reading.sources import FileSource, QuerySource

        if self.source is not None:
            return FileSource(self.source)
        return QuerySource(self.query or "", database=self.database)

    def people(self, rule: "IdRule") -> "PreparedIds":
        """Return the distinct ids of the source, as ``rule`` writes them."""
        from colonnade.data.dialect import PLAIN
        from colonnade.data.schema import load_schema
        from colonnade.party.alignment.people import read_people

        dialect = PLAIN if self.schema is None else load_schema(self.schema).dialect
        return read_people(self.rows, self.id, rule, dialect=dialect)


def _is_server(database: str) -> bool:
    """Return whether a database is reached over a network; files and SQLite are not."""
    scheme, found, _ = database.partition("://")
    return bool(found) and not scheme.startswith(("sqlite", "duckdb"))
