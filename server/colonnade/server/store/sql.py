"""The coordinator's store in SQLite or PostgreSQL, through SQLAlchemy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

import sqlalchemy as sa

from colonnade.core.errors import StoreConflict
from colonnade.server.store.base import DecisionRow, IterateRow, JobRow, PartyRow, State, UplinkRow
from colonnade.server.store.connect import engine_of, parsed_url
from colonnade.server.store.faults import faults
from colonnade.server.store.peers import PostgresPeers
from colonnade.server.store.schema import prepare
from colonnade.server.store.statements import Write, writes_for
from colonnade.server.store.tables import (
    DECISIONS,
    INBOX,
    ITERATES,
    JOBS,
    OUTBOX,
    PARTIES,
    UPLINK,
)


def _values(row: PartyRow | DecisionRow | IterateRow | UplinkRow) -> dict[str, Any]:
    return {item.name: getattr(row, item.name) for item in fields(row)}


def _exchange(job_id: str, round_: int, bodies: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [
        {"job_id": job_id, "round": round_, "party": party, "body": body}
        for party, body in bodies.items()
    ]


class Database:
    """A `Store` over one connection; any failure of the database stops the coordinator.

    Parameters
    ----------
    url
        SQLite, for one process alone; or PostgreSQL, for any number of them.
    """

    def __init__(self, url: str) -> None:
        self._url = parsed_url(url)
        self._texts: dict[Write, tuple[str, Sequence[str] | None]] = {}
        self.peers: PostgresPeers | None = None
        with faults():
            self._engine = engine_of(self._url)
            backend = self._url.get_backend_name()
            self._puts = writes_for(backend)
            self._connection = self._engine.connect()
            try:
                with self._connection.begin():
                    prepare(self._connection)
                    if backend == "postgresql":
                        self.peers = PostgresPeers(self._connection)
            except BaseException:
                self.close()
                raise

    @property
    def engine(self) -> sa.Engine:
        """The connections' source, for those who need one of their own."""
        return self._engine

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make what is written inside durable together when it ends."""
        if self.peers is not None:
            self.peers.begin()
        with faults(), self._connection.begin():
            yield

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
        self._engine.dispose()

    # -- parties ---------------------------------------------------------------------------------

    def put_party(self, row: PartyRow) -> None:
        """Write a party."""
        self._write(self._puts.party, [_values(row)])

    def open_session(self, row: PartyRow) -> None:
        """Write a party's new session; another one opened meanwhile is a `StoreConflict`."""
        news = ("epoch", "offer", "head", "told_at", "process")
        self._set(self._puts.session, row, news, at_epoch=row.epoch - 1)
        if self.peers is not None:
            self.peers.drop_down(row.name)

    def close_session(self, row: PartyRow) -> None:
        """Note that a session is over, unless the party has a newer one."""
        mine = (PARTIES.c.name == row.name, PARTIES.c.epoch == row.epoch)
        self._do(sa.update(PARTIES).where(*mine).values(process=""))

    def put_standing(self, row: PartyRow) -> None:
        """Write what a party told of its ledger and budget in its open session."""
        self._set(self._puts.standing, row, ("offer", "head", "told_at"), at_epoch=row.epoch)

    def put_newest(self, rows: Iterable[PartyRow]) -> None:
        """Write parties' newest releases, unless newer ones are there."""
        values = [
            {
                "new_latest": row.latest,
                "new_latest_seq": row.latest_seq,
                "at_name": row.name,
                "at_ledger": row.ledger_id,
                "at_seq": row.latest_seq,
            }
            for row in rows
        ]
        if values:
            self._write(self._puts.newest, values)

    def party(self, name: str) -> PartyRow | None:
        """Return one party."""
        found = self._all(sa.select(PARTIES).where(PARTIES.c.name == name))
        return PartyRow(**found[0]) if found else None

    def parties(self) -> Sequence[PartyRow]:
        """Return all parties by name."""
        return [PartyRow(**row) for row in self._all(sa.select(PARTIES).order_by("name"))]

    # -- jobs ------------------------------------------------------------------------------------

    def add_job(self, row: JobRow) -> None:
        """Write a new job."""
        self._do(sa.insert(JOBS).values(asdict(row) | {"state": row.state.value}))
        if self.peers is not None:
            self.peers.begin_job(row.job_id)

    def set_state(self, row: JobRow) -> None:
        """Change where a job stands."""
        self._guard(row.job_id)
        change = sa.update(JOBS).where(JOBS.c.job_id == row.job_id)
        news = {name: getattr(row, name) for name in ("reason", "ended_at", "outcome")}
        self._do(change.values(state=row.state.value, **news))
        if self.peers is not None and row.state.ended:
            self.peers.end_job(row.job_id)

    def job(self, job_id: str) -> JobRow | None:
        """Return one job."""
        found = self._all(sa.select(JOBS).where(JOBS.c.job_id == job_id))
        return _job(found[0]) if found else None

    def named(self, prefix: str) -> Sequence[str]:
        """Return the names of jobs that begin so."""
        begins = sa.func.substr(JOBS.c.job_id, 1, len(prefix)) == prefix
        return [row["job_id"] for row in self._all(sa.select(JOBS.c.job_id).where(begins))]

    def jobs(self) -> Sequence[JobRow]:
        """Return all jobs, newest first."""
        found = self._all(sa.select(JOBS).order_by(JOBS.c.submitted_at.desc(), "job_id"))
        return [_job(row) for row in found]

    def put_decision(self, row: DecisionRow) -> None:
        """Write a party's word."""
        self._guard(row.job_id)
        self._write(self._puts.decision, [_values(row)])

    def decisions(self, job_id: str) -> Sequence[DecisionRow]:
        """Return the parties' words on a job."""
        return [DecisionRow(**row) for row in self._of(DECISIONS, job_id, "party")]

    # -- rounds ----------------------------------------------------------------------------------

    def put_tasks(self, job_id: str, round_: int, tasks: Mapping[str, bytes]) -> None:
        """Write what will be asked, by party."""
        if rows := _exchange(job_id, round_, tasks):
            self._guard(job_id)
            self._write(self._puts.task, rows)

    def tasks(self, job_id: str, round_: int) -> Mapping[str, bytes]:
        """Return what is asked in a round, by party."""
        return self._bodies(OUTBOX, job_id, round_)

    def put_answers(self, job_id: str, round_: int, answers: Mapping[str, bytes]) -> None:
        """Write submissions, by party."""
        if rows := _exchange(job_id, round_, answers):
            self._guard(job_id)
            self._write(self._puts.answer, rows)

    def answers(self, job_id: str, round_: int) -> Mapping[str, bytes]:
        """Return the submissions of a round, by party."""
        return self._bodies(INBOX, job_id, round_)

    def put_iterate(self, row: IterateRow) -> None:
        """Write the state before a round."""
        self._guard(row.job_id)
        self._write(self._puts.iterate, [_values(row)])

    def latest_iterate(self, job_id: str) -> IterateRow | None:
        """Return the newest state."""
        query = sa.select(ITERATES).where(ITERATES.c.job_id == job_id)
        found = self._all(query.order_by(ITERATES.c.round.desc()).limit(1))
        return IterateRow(**found[0]) if found else None

    def iterates(self, job_id: str) -> Sequence[IterateRow]:
        """Return all states in order."""
        return [IterateRow(**row) for row in self._of(ITERATES, job_id, "round")]

    def forget_messages(self, job_id: str, *, first: int, before: int) -> None:
        """Remove the tasks and submissions of the rounds from one on and before another."""
        self._guard(job_id)
        for table in (OUTBOX, INBOX):
            gone = (table.c.round >= first) & (table.c.round < before)
            self._do(sa.delete(table).where(table.c.job_id == job_id, gone))

    def forget_iterates(self, job_id: str, *, before: int) -> None:
        """Remove the states before a round."""
        self._guard(job_id)
        of_job = ITERATES.c.job_id == job_id
        self._do(sa.delete(ITERATES).where(of_job, ITERATES.c.round < before))

    # -- bytes -----------------------------------------------------------------------------------

    def add_uplink(self, rows: Iterable[UplinkRow]) -> None:
        """Add to the byte counts."""
        if values := [_values(row) for row in rows]:
            self._write(self._puts.uplink, values)

    def uplink(self, job_id: str) -> Sequence[UplinkRow]:
        """Return a job's byte counts in order of round, party and kind."""
        return [UplinkRow(**row) for row in self._of(UPLINK, job_id, "round", "party", "kind")]

    # -- inside ----------------------------------------------------------------------------------

    def _guard(self, job_id: str) -> None:
        """Compare the job's fencing token, once in a transaction, before anything is written."""
        if self.peers is not None:
            with faults():
                self.peers.guard(job_id)

    def _set(self, statement: Write, row: PartyRow, names: Iterable[str], *, at_epoch: int) -> None:
        """Change a party's row, if its session is still the one of ``at_epoch``."""
        values = {f"new_{name}": getattr(row, name) for name in names}
        if not self._write(statement, [values | {"at_name": row.name, "at_epoch": at_epoch}]):
            raise StoreConflict(f"party {row.name} has another session by now")

    def _write(self, statement: Write, rows: list[dict[str, Any]]) -> int:
        """Run a frequent statement, whose text is made once (SQLAlchemy's own way is slower).

        Return how many rows it changed.
        """
        if (known := self._texts.get(statement)) is None:
            columns = list(rows[0]) if isinstance(statement, sa.Insert) else None
            made = statement.compile(dialect=self._engine.dialect, column_keys=columns)
            known = self._texts[statement] = (str(made), made.positiontup)
        text, order = known
        with faults():
            values: Any = rows
            if order is not None:
                values = [tuple(row[name] for name in order) for row in rows]
            return self._connection.exec_driver_sql(text, values).rowcount

    def _do(self, statement: sa.Executable, values: list[dict[str, Any]] | None = None) -> None:
        with faults():
            self._connection.execute(statement, values)

    def _all(self, query: "sa.Select[Any]") -> list[dict[str, Any]]:
        with faults():
            if self._connection.in_transaction():
                return [dict(row) for row in self._connection.execute(query).mappings()]
            with self._connection.begin():  # a read must not leave one open
                return [dict(row) for row in self._connection.execute(query).mappings()]

    def _of(self, table: sa.Table, job_id: str, *order: str) -> list[dict[str, Any]]:
        query = sa.select(table).where(table.c.job_id == job_id)
        return self._all(query.order_by(*(table.c[name] for name in order)))

    def _bodies(self, table: sa.Table, job_id: str, round_: int) -> Mapping[str, bytes]:
        query = sa.select(table.c.party, table.c.body)
        query = query.where(table.c.job_id == job_id, table.c.round == round_)
        return {row["party"]: bytes(row["body"]) for row in self._all(query)}


def _job(row: dict[str, Any]) -> JobRow:
    return JobRow(**(dict(row) | {"state": State(row["state"])}))
