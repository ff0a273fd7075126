"""What the harness counts; every target is zero."""

import json
import sqlite3
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from urllib.parse import quote


@dataclass(slots=True)
class Counters:
    """Broken promises, by kind.

    ``double_spent``: a second charge for a key. ``under_counted``: bytes on the wire without a
    durable charge and body at that instant. ``re_drawn``: two different bodies for a key.
    ``mutated_ok``: a changed request answered under a used key. ``stranded``: a paid release that
    cannot be had after recovery. ``opened_with_more_budget``: a ledger that opened with less
    spent than was durable before.
    """

    double_spent: int = 0
    under_counted: int = 0
    re_drawn: int = 0
    mutated_ok: int = 0
    stranded: int = 0
    opened_with_more_budget: int = 0

    def add(self, other: "Counters") -> None:
        """Add the counts of ``other`` in place."""
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return sum(asdict(self).values())


@dataclass(frozen=True, slots=True)
class Durable:
    """What a copy of a ledger's files holds, read without any code of the ledger."""

    charges: dict[int, list[int]]  # units of each charge, by round
    bodies: dict[int, bytes]

    @property
    def spent(self) -> int:
        """Sum of all charges."""
        return sum(sum(units) for units in self.charges.values())


def read_durable(database: Path) -> Durable:
    """Read charges and bodies with the standard library's SQLite; the file must be a copy."""
    charges: dict[int, list[int]] = {}
    bodies: dict[int, bytes] = {}
    connection = sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True)
    try:
        for line, body in connection.execute(
            "SELECT line, bytes FROM entry LEFT JOIN body USING (seq) ORDER BY seq"
        ):
            entry = json.loads(line)
            if entry["type"] == "charged":
                charges.setdefault(entry["round"], []).append(entry["units"])
            if entry["type"] == "stored":
                bodies[entry["round"]] = bytes(body)
    finally:
        connection.close()
    return Durable(charges, bodies)
