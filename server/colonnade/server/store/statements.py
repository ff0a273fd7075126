"""The frequent writes of the coordinator's store, as SQL that both databases take."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from colonnade.server.store.tables import (
    COUNTS,
    DECISIONS,
    INBOX,
    ITERATES,
    OUTBOX,
    PARTIES,
    UPLINK,
)

Write: TypeAlias = sa.Insert | sa.Update


@dataclass(frozen=True, slots=True)
class Writes:
    """Each is compiled once; parameters that only compare are called ``at_...``."""

    party: sa.Insert
    session: sa.Update
    standing: sa.Update
    newest: sa.Update
    decision: sa.Insert
    uplink: sa.Insert
    task: sa.Insert
    answer: sa.Insert
    iterate: sa.Insert


def writes_for(backend: str) -> Writes:
    """Return the statements for a database."""
    insert: Any = postgres_insert if backend == "postgresql" else sqlite_insert

    def replacing(table: sa.Table, keys: list[str]) -> sa.Insert:
        made = insert(table)
        changed = {each.name: each for each in made.excluded if each.name not in keys}
        put: sa.Insert = made.on_conflict_do_update(index_elements=keys, set_=changed)
        return put

    made = insert(UPLINK)
    added = {name: UPLINK.c[name] + made.excluded[name] for name in COUNTS}
    keys = ["job_id", "round", "party", "kind"]
    party = PARTIES.c
    of_name = party.name == sa.bindparam("at_name")
    return Writes(
        party=replacing(PARTIES, ["name"]),
        # Each writes its own columns, under a condition that nobody else wrote them meanwhile: a
        # session of its party's epoch, releases of their place in the ledger.
        session=_setting("epoch", "offer", "head", "told_at", "process").where(
            of_name, party.epoch == sa.bindparam("at_epoch")
        ),
        standing=_setting("offer", "head", "told_at").where(
            of_name, party.epoch == sa.bindparam("at_epoch")
        ),
        newest=_setting("latest", "latest_seq").where(
            of_name,
            party.ledger_id == sa.bindparam("at_ledger"),
            party.latest_seq < sa.bindparam("at_seq"),
        ),
        decision=replacing(DECISIONS, ["job_id", "party"]),
        uplink=made.on_conflict_do_update(index_elements=keys, set_=added),
        task=sa.insert(OUTBOX),
        answer=sa.insert(INBOX),
        iterate=sa.insert(ITERATES),
    )


def _setting(*names: str) -> sa.Update:
    types = {name: PARTIES.c[name].type for name in names}
    return sa.update(PARTIES).values(
        {name: sa.bindparam(f"new_{name}", type_=kind) for name, kind in types.items()}
    )
