"""What coordinator processes share in PostgreSQL: leases with fencing tokens, and messages.

A lease is alive while its owner's heartbeat is; clocks are the database's. It decides who may take
a job over, and nothing else: whoever writes to a job locks the job's lease row and compares owner
and token in the same transaction (`PostgresPeers.guard`), so an owner that stood still while its
job was taken over can write nothing, whenever it wakes.

References
----------
M. Kleppmann (2016), How to do distributed locking (fencing tokens).
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from colonnade.core.errors import StoreConflict
from colonnade.server.store.base import Letter, OpenSession
from colonnade.server.store.tables import LEASES, PARTIES, PROCESSES, RELAY_DOWN, RELAY_UP

LEASE_S = 4.0
"""Seconds without a heartbeat after which a process's jobs are taken over."""
CHANNEL = "colonnade"
EVERYBODY = "*"
JOB_CHANGED = "job:"
_FORGOTTEN = "1 day"  # after which a silent process is removed

_NOW = sa.func.clock_timestamp()
_LEASE = sa.text(f"interval '{LEASE_S} seconds'")
# Nobody was seen in the future: a clock that was set back must not keep the dead alive.
_LIVING = sa.select(PROCESSES.c.name).where(
    PROCESSES.c.seen_at > _NOW - _LEASE, PROCESSES.c.seen_at < _NOW + _LEASE
)


class PostgresPeers:
    """The part of a store that several processes share, on the store's own connection."""

    def __init__(self, connection: sa.Connection) -> None:
        self.process = secrets.token_hex(8)
        self._connection = connection
        self._tokens: dict[str, int] = {}
        self._guarded: set[str] = set()
        self._wake: set[str] = set()
        old = PROCESSES.c.seen_at < _NOW - sa.text(f"interval '{_FORGOTTEN}'")
        self._do(sa.delete(PROCESSES).where(old))
        self._do(sa.insert(PROCESSES).values(name=self.process, seen_at=_NOW))

    # -- jobs ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a transaction: nothing is guarded yet."""
        self._guarded.clear()
        self._wake.clear()

    def guard(self, job_id: str) -> None:
        """Lock a job's lease and compare its owner and token; `StoreConflict` if it was taken."""
        if job_id in self._guarded:
            return
        found = self._do(
            sa.select(LEASES.c.token)
            .where(LEASES.c.job_id == job_id, LEASES.c.owner == self.process)
            .with_for_update()
        ).scalar()
        if found is None or found != self._tokens.get(job_id):
            raise StoreConflict(f"job {job_id[:12]} is another process's")
        self._guarded.add(job_id)

    def begin_job(self, job_id: str) -> None:
        """Own a job that is new."""
        self._do(sa.insert(LEASES).values(job_id=job_id, owner=self.process, token=1))
        self._tokens[job_id] = 1
        self._guarded.add(job_id)

    def end_job(self, job_id: str) -> None:
        """Remove what a job that has ended needs no more."""
        for table in (LEASES, RELAY_UP):
            self._do(sa.delete(table).where(table.c.job_id == job_id))
        self._tokens.pop(job_id, None)

    def claim(self, limit: int) -> Sequence[str]:
        """Take jobs whose owner is gone and return their names.

        A row that is locked belongs to an owner who is writing; it is looked at again later.
        """
        free = (
            sa.select(LEASES.c.job_id)
            .where(LEASES.c.owner.not_in(_LIVING))
            .order_by(LEASES.c.job_id)
            .limit(limit)
            .with_for_update(skip_locked=True)
            .scalar_subquery()
        )
        news = {"owner": self.process, "token": LEASES.c.token + 1}
        taken = self._do(
            sa.update(LEASES)
            .where(LEASES.c.job_id.in_(free))
            .values(news)
            .returning(LEASES.c.job_id, LEASES.c.token)
        ).all()
        for row in taken:
            self._tokens[row.job_id] = row.token
            self._guarded.add(row.job_id)
        return [row.job_id for row in taken]

    def owned(self) -> Sequence[str]:
        """Return the jobs that are this process's own by the database, and hold their tokens."""
        found = self._do(
            sa.select(LEASES.c.job_id, LEASES.c.token).where(LEASES.c.owner == self.process)
        )
        self._tokens = {row.job_id: row.token for row in found}
        return list(self._tokens)

    def lost(self) -> Sequence[str]:
        """Return the jobs that this process held and another has taken, and let go of them."""
        query = sa.select(LEASES.c.job_id, LEASES.c.token).where(LEASES.c.owner == self.process)
        held = {row.job_id: row.token for row in self._do(query)}
        gone = [name for name, token in self._tokens.items() if held.get(name) != token]
        for name in gone:
            del self._tokens[name]
        return gone

    def leave(self) -> None:
        """Give up all jobs and sessions, for a clean stop."""
        mine = LEASES.c.owner == self.process
        self._do(sa.update(LEASES).where(mine).values(owner=""))
        self._do(sa.update(PARTIES).where(PARTIES.c.process == self.process).values(process=""))
        self._do(sa.delete(PROCESSES).where(PROCESSES.c.name == self.process))
        self._tokens.clear()
        self._wake.add(EVERYBODY)

    # -- sessions and messages -------------------------------------------------------------------

    def sessions(self) -> Mapping[str, OpenSession]:
        """Return the parties that are attached to a process that lives."""
        rows = self._do(
            sa.select(PARTIES.c.name, PARTIES.c.epoch, PARTIES.c.process).where(
                PARTIES.c.process.in_(_LIVING)
            )
        )
        return {row.name: OpenSession(row.epoch, row.process) for row in rows}

    def post_up(self, job_id: str, *, sender: str, kind: str, body: bytes) -> bool:
        """Leave a message for a job's owner; return False if the job has ended."""
        owner = self._do(sa.select(LEASES.c.owner).where(LEASES.c.job_id == job_id)).scalar()
        if owner is None:
            return False
        values = {"job_id": job_id, "sender": sender, "kind": kind, "body": body}
        self._do(sa.insert(RELAY_UP).values(values))
        self._wake.add(owner)
        return True

    def take_up(self, limit: int) -> Sequence[Letter]:
        """Take the messages for the jobs that this process owns, in order."""
        table = RELAY_UP.c
        mine = sa.select(LEASES.c.job_id).where(LEASES.c.owner == self.process)
        return self._take(RELAY_UP, table.job_id.in_(mine), "job_id", "sender", "kind", limit)

    def post_down(self, party: str, *, code: str, body: bytes) -> None:
        """Leave a message for the process that has a party's session."""
        self._do(sa.insert(RELAY_DOWN).values(party=party, code=code, body=body))
        where = self._do(sa.select(PARTIES.c.process).where(PARTIES.c.name == party)).scalar()
        self._wake.add(where or EVERYBODY)

    def take_down(self, limit: int) -> Sequence[Letter]:
        """Take the messages for parties that are attached here, in order."""
        mine = sa.select(PARTIES.c.name).where(PARTIES.c.process == self.process)
        return self._take(RELAY_DOWN, RELAY_DOWN.c.party.in_(mine), "party", "", "code", limit)

    def drop_down(self, party: str) -> None:
        """Remove what an earlier session of a party did not get: a new one is told anew."""
        self._do(sa.delete(RELAY_DOWN).where(RELAY_DOWN.c.party == party))
        self._wake.add(EVERYBODY)

    def announce(self, changed: Iterable[str]) -> None:
        """Wake the processes that this transaction concerns; ``changed`` are jobs."""
        names = [*self._wake - {self.process}, *(f"{JOB_CHANGED}{job_id}" for job_id in changed)]
        for name in names:  # delivered once the transaction is durable
            self._do(sa.select(sa.func.pg_notify(CHANNEL, name)))

    # -- inside ----------------------------------------------------------------------------------

    def _take(
        self, table: sa.Table, mine: Any, about: str, sender: str, kind: str, limit: int
    ) -> Sequence[Letter]:
        first = sa.select(table.c.id).where(mine).order_by(table.c.id).limit(limit)
        found = self._do(sa.delete(table).where(table.c.id.in_(first)).returning(table)).mappings()
        return [
            Letter(row[about], row[sender] if sender else "", row[kind], bytes(row["body"]))
            for row in sorted(found, key=lambda row: row["id"])
        ]

    def _do(self, statement: sa.Executable) -> "sa.CursorResult[Any]":
        return self._connection.execute(statement)
