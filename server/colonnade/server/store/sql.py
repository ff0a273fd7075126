"""The coordinator's store in SQLite or PostgreSQL, through SQLAlchemy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from colonnade.core.errors import BadInput, StoreBusy, StoreFailed
from colonnade.server.store.base import DecisionRow, IterateRow, JobRow, PartyRow, State, UplinkRow
from colonnade.server.store.connect import engine_of, parsed_url
from colonnade.server.store.tables import (
    ABOUT,
    COUNTS,
    DECISIONS,
    INBOX,
    ITERATES,
    JOBS,
    OUTBOX,
    PARTIES,
    SCHEMA_VERSION,
    TABLES,
    UPLINK,
)

_LOCK = 0x636F6C6F6E6E6164  # of PostgreSQL: any number that others are unlikely to take
_IN_USE = (
    "another coordinator uses this database; stop it first, or give this one a database of its own"
)


@dataclass(frozen=True, slots=True)
class _Puts:
    """The frequent inserts."""

    party: sa.Insert
    decision: sa.Insert
    uplink: sa.Insert
    task: sa.Insert
    answer: sa.Insert
    iterate: sa.Insert


def _puts(backend: str) -> _Puts:
    insert: Any = postgres_insert if backend == "postgresql" else sqlite_insert

    def replacing(table: sa.Table, keys: list[str]) -> sa.Insert:
        made = insert(table)
        changed = {each.name: each for each in made.excluded if each.name not in keys}
        put: sa.Insert = made.on_conflict_do_update(index_elements=keys, set_=changed)
        return put

    made = insert(UPLINK)
    added = {name: UPLINK.c[name] + made.excluded[name] for name in COUNTS}
    keys = ["job_id", "round", "party", "kind"]
    return _Puts(
        party=replacing(PARTIES, ["name"]),
        decision=replacing(DECISIONS, ["job_id", "party"]),
        uplink=made.on_conflict_do_update(index_elements=keys, set_=added),
        task=sa.insert(OUTBOX),
        answer=sa.insert(INBOX),
        iterate=sa.insert(ITERATES),
    )


def _values(row: PartyRow | DecisionRow | IterateRow | UplinkRow) -> dict[str, Any]:
    return {item.name: getattr(row, item.name) for item in fields(row)}


def _exchange(job_id: str, round_: int, bodies: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [
        {"job_id": job_id, "round": round_, "party": party, "body": body}
        for party, body in bodies.items()
    ]


class Database:
    """A `Store` over one connection; any failure of the database stops the coordinator."""

    def __init__(self, url: str) -> None:
        self._url = parsed_url(url)
        self._texts: dict[sa.Insert, tuple[str, Sequence[str] | None]] = {}
        with _faults():
            self._engine = engine_of(self._url)
            self._puts = _puts(self._url.get_backend_name())
            self._connection = self._engine.connect()
            try:
                with self._connection.begin():
                    self._lock()
                    TABLES.create_all(self._connection)
                    self._check_version()
            except BaseException:
                self.close()
                raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make what is written inside durable together when it ends."""
        with _faults(), self._connection.begin():
            yield

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
        self._engine.dispose()

    # -- parties ---------------------------------------------------------------------------------

    def put_party(self, row: PartyRow) -> None:
        """Write a party."""
        self._write(self._puts.party, [_values(row)])

    def parties(self) -> Sequence[PartyRow]:
        """Return all parties by name."""
        return [PartyRow(**row) for row in self._all(sa.select(PARTIES).order_by("name"))]

    # -- jobs ------------------------------------------------------------------------------------

    def add_job(self, row: JobRow) -> None:
        """Write a new job."""
        self._do(sa.insert(JOBS).values(asdict(row) | {"state": row.state.value}))

    def set_state(self, row: JobRow) -> None:
        """Change where a job stands."""
        change = sa.update(JOBS).where(JOBS.c.job_id == row.job_id)
        news = {name: getattr(row, name) for name in ("reason", "ended_at", "outcome")}
        self._do(change.values(state=row.state.value, **news))

    def jobs(self) -> Sequence[JobRow]:
        """Return all jobs, newest first."""
        found = self._all(sa.select(JOBS).order_by(JOBS.c.submitted_at.desc(), "job_id"))
        return [JobRow(**(dict(row) | {"state": State(row["state"])})) for row in found]

    def put_decision(self, row: DecisionRow) -> None:
        """Write a party's word."""
        self._write(self._puts.decision, [_values(row)])

    def decisions(self, job_id: str) -> Sequence[DecisionRow]:
        """Return the parties' words on a job."""
        return [DecisionRow(**row) for row in self._of(DECISIONS, job_id, "party")]

    # -- rounds ----------------------------------------------------------------------------------

    def put_tasks(self, job_id: str, round_: int, tasks: Mapping[str, bytes]) -> None:
        """Write what will be asked, by party."""
        if rows := _exchange(job_id, round_, tasks):
            self._write(self._puts.task, rows)

    def tasks(self, job_id: str, round_: int) -> Mapping[str, bytes]:
        """Return what is asked in a round, by party."""
        return self._bodies(OUTBOX, job_id, round_)

    def put_answers(self, job_id: str, round_: int, answers: Mapping[str, bytes]) -> None:
        """Write submissions, by party."""
        if rows := _exchange(job_id, round_, answers):
            self._write(self._puts.answer, rows)

    def answers(self, job_id: str, round_: int) -> Mapping[str, bytes]:
        """Return the submissions of a round, by party."""
        return self._bodies(INBOX, job_id, round_)

    def put_iterate(self, row: IterateRow) -> None:
        """Write the state before a round."""
        self._write(self._puts.iterate, [_values(row)])

    def latest_iterate(self, job_id: str) -> IterateRow | None:
        """Return the newest state."""
        query = sa.select(ITERATES).where(ITERATES.c.job_id == job_id)
        found = self._all(query.order_by(ITERATES.c.round.desc()).limit(1))
        return IterateRow(**found[0]) if found else None

    def iterates(self, job_id: str) -> Sequence[IterateRow]:
        """Return all states in order."""
        return [IterateRow(**row) for row in self._of(ITERATES, job_id, "round")]

    def forget_messages(self, job_id: str, *, before: int) -> None:
        """Remove the tasks and submissions of rounds before one."""
        for table in (OUTBOX, INBOX):
            self._do(sa.delete(table).where(table.c.job_id == job_id, table.c.round < before))

    def forget_iterates(self, job_id: str, *, before: int) -> None:
        """Remove the states before a round."""
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

    def _write(self, statement: sa.Insert, rows: list[dict[str, Any]]) -> None:
        """Run one of the frequent inserts, whose text is made once: SQLAlchemy's own is slower."""
        if (known := self._texts.get(statement)) is None:
            made = statement.compile(dialect=self._engine.dialect, column_keys=list(rows[0]))
            known = self._texts[statement] = (str(made), made.positiontup)
        text, order = known
        with _faults():
            if order is None:
                self._connection.exec_driver_sql(text, rows)
            else:
                values = [tuple(row[name] for name in order) for row in rows]
                self._connection.exec_driver_sql(text, values)

    def _do(self, statement: sa.Executable, values: list[dict[str, Any]] | None = None) -> None:
        with _faults():
            self._connection.execute(statement, values)

    def _all(self, query: "sa.Select[Any]") -> list[dict[str, Any]]:
        with _faults():
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

    def _lock(self) -> None:
        """Take the database for this process alone; SQLite's own lock does it for a file."""
        if self._url.get_backend_name() == "postgresql":
            # Of the session: it ends with the connection, however the process ends.
            locked = self._connection.execute(sa.select(sa.func.pg_try_advisory_lock(_LOCK)))
            if not locked.scalar():
                raise StoreBusy(_IN_USE)

    def _check_version(self) -> None:
        found = self._connection.execute(sa.select(ABOUT.c.schema_version)).scalars().all()
        if not found:
            self._connection.execute(sa.insert(ABOUT).values(schema_version=SCHEMA_VERSION))
        elif found != [SCHEMA_VERSION]:
            raise BadInput(
                f"the database has schema version {found[0]}, this program {SCHEMA_VERSION}; "
                "use the program that made it or a new database"
            )


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        # Its text may hold parameters; the class and the driver's first line are enough.
        cause = str(getattr(error, "orig", None) or type(error).__name__).splitlines()[0]
        if "database is locked" in cause:
            raise StoreBusy(_IN_USE) from None
        raise StoreFailed(
            f"the coordinator's database failed ({cause}); see that it is there and not full, "
            "then start again"
        ) from None
    except OSError as error:
        raise StoreFailed(f"the coordinator's database failed: {error.strerror}") from None
