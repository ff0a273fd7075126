"""The coordinator's store: one suite over a SQLite file and a real PostgreSQL."""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.desk import Desk, job_of
from support.postgres import PASSWORD, reset, running_postgres

from colonnade.core.errors import EXIT_BUSY, BadInput, StoreBusy, StoreFailed
from colonnade.server.store.base import (
    DecisionRow,
    IterateRow,
    JobRow,
    PartyRow,
    State,
    UplinkRow,
)
from colonnade.server.store.sql import Database
from colonnade.server.store.tables import ABOUT, SCHEMA_VERSION
from colonnade.simulate.federation import free_port


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/hub/coordinator.db"
    found: str = request.getfixturevalue("postgres")
    reset(found)
    return found


def engine_of(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


@pytest.fixture
def store(url: str) -> Iterator[Database]:
    made = Database(url)
    yield made
    made.close()


def again(store: Database, url: str) -> Database:
    store.close()
    return Database(url)


def write(store: Database, *calls: Callable[[], None]) -> None:
    with store.transaction():
        for call in calls:
            call()


PARTY = PartyRow(
    "lab", bytes(16), bytes(range(32)), 2**40, b"\0latest\xff", 2**62, b"offer", b"\0head\xff", 1e9
)
JOB = JobRow("j1", b"\0spec\xff", "spiffe://s/operator/a", 1e9 + 0.25)


def test_what_is_written_is_there_after_a_restart(store: Database, url: str) -> None:
    decision = DecisionRow("j1", "lab", accepted=True)
    iterates = [IterateRow("j1", round_, b"\0" * round_, bytes([round_])) for round_ in range(12)]
    write(
        store,
        lambda: store.put_party(PARTY),
        lambda: store.add_job(JOB),
        lambda: store.put_decision(decision),
        lambda: store.put_tasks("j1", 3, {"lab": b"\0", "hospital": b""}),
        lambda: store.put_answers("j1", 3, {"lab": b"\xff" * 100_000}),
        *(partial(store.put_iterate, row) for row in iterates),
    )
    back = again(store, url)
    try:
        assert back.parties() == [PARTY]
        assert back.jobs() == [JOB]
        assert back.decisions("j1") == [decision]
        assert back.tasks("j1", 3) == {"lab": b"\0", "hospital": b""}
        assert back.answers("j1", 3) == {"lab": b"\xff" * 100_000}
        assert back.tasks("j1", 4) == back.answers("j2", 3) == {}
        assert back.iterates("j1") == iterates  # by number, not by text: 10 comes after 9
        assert back.latest_iterate("j1") == iterates[-1]
        assert back.latest_iterate("j2") is None
    finally:
        back.close()


def test_rows_are_replaced_ended_and_listed_newest_first(store: Database) -> None:
    newer = replace(JOB, job_id="j2", submitted_at=2e9)
    ended = replace(JOB, state=State.FAILED, reason="why", ended_at=3e9, outcome=b"\0how\xff")
    write(store, lambda: store.put_party(PARTY), lambda: store.add_job(JOB))
    write(store, lambda: store.add_job(newer))
    write(
        store,
        lambda: store.put_party(replace(PARTY, epoch=7)),
        lambda: store.set_state(ended),
        lambda: store.put_decision(DecisionRow("j1", "lab", accepted=True)),
        lambda: store.put_decision(DecisionRow("j1", "lab", accepted=False, code="c", message="m")),
    )
    assert store.parties() == [replace(PARTY, epoch=7)]
    assert store.jobs() == [newer, ended]
    assert store.decisions("j1") == [DecisionRow("j1", "lab", False, "c", "m")]


def test_byte_counts_add_up(store: Database) -> None:
    row = UplinkRow("j1", 1, "lab", "share", 10, 20, 1, 5)
    other = UplinkRow("j1", 10, "lab", "select", 4, 8, 1, 0)
    write(store, lambda: store.add_uplink([row, other]))
    write(store, lambda: store.add_uplink([row]), lambda: store.add_uplink([]))
    assert store.uplink("j1") == [UplinkRow("j1", 1, "lab", "share", 20, 40, 2, 10), other]
    assert store.uplink("j2") == []


def test_a_transaction_that_fails_leaves_nothing(store: Database) -> None:
    class Stop(Exception):
        pass

    def stop() -> None:
        raise Stop

    with pytest.raises(Stop):
        write(store, lambda: store.add_job(JOB), lambda: store.put_party(PARTY), stop)
    assert store.jobs() == []
    assert store.parties() == []


def test_a_key_is_written_once_and_its_failure_says_nothing_of_what_was_written(
    store: Database,
) -> None:
    secret = b"a noisy body"
    for name in ("j1", "j9"):
        write(store, partial(store.add_job, replace(JOB, job_id=name)))
    write(store, lambda: store.put_answers("j1", 0, {"lab": secret}))
    for call in (
        lambda: store.put_answers("j1", 0, {"lab": b"another noisy body"}),
        lambda: store.put_tasks("j9", 0, {"lab": None}),  # type: ignore[dict-item]
    ):
        with pytest.raises(StoreFailed) as failed:
            write(store, call)
        text = str(failed.value)
        assert len(text.splitlines()) == 1
        for leaked in ("noisy", "j1", "lab", "INSERT", PASSWORD, repr(secret)):
            assert leaked not in text
    assert store.answers("j1", 0) == {"lab": secret}


@pytest.mark.slow
def test_a_second_coordinator_on_a_sqlite_file_is_refused_in_one_line(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/hub/coordinator.db"
    store = Database(url)
    write(store, lambda: store.put_party(PARTY))
    with pytest.raises(StoreBusy) as refused:
        Database(url)
    assert len(str(refused.value).splitlines()) == 1
    assert refused.value.exit_code == EXIT_BUSY
    assert store.parties() == [PARTY]  # the first one goes on
    back = again(store, url)
    assert back.parties() == [PARTY]
    back.close()


def test_a_killed_coordinator_leaves_the_database_free_and_what_it_committed(url: str) -> None:
    program = f"""
        import os, signal
        from colonnade.server.store.sql import Database
        from colonnade.server.store.base import PartyRow
        store = Database({url!r})
        with store.transaction():
            store.put_party(PartyRow("kept", b"", b""))
        with store.transaction():
            store.put_party(PartyRow("lost", b"", b""))
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=60)
    assert done.returncode == -9
    store = Database(url)
    assert [row.name for row in store.parties()] == ["kept"]
    store.close()


def test_a_job_runs_on_the_store_and_a_new_coordinator_sees_all_of_it(
    store: Database, url: str
) -> None:
    desk, plain = Desk("hospital", "lab", store=store), Desk("hospital", "lab")
    name = desk.run(job_of("hospital", "lab"))
    assert desk.state(name) is State.FINISHED
    assert plain.run(job_of("hospital", "lab")) == name
    chain = [(row.body, row.chain) for row in plain.store.iterates(name)]
    desk.store = again(store, url)
    desk.start()
    assert [(row.body, row.chain) for row in desk.store.iterates(name)] == chain
    assert desk.engine.ended == {name: State.FINISHED}
    desk.attach("lab")
    assert desk.epochs["lab"] == 2
    desk.store.close()
    plain.store.close()


def test_another_schema_version_is_refused(store: Database, url: str) -> None:
    store.close()
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(sa.update(ABOUT).values(schema_version=SCHEMA_VERSION + 1))
    engine.dispose()
    with pytest.raises(BadInput, match=f"version {SCHEMA_VERSION + 1}"):
        Database(url)


def test_a_database_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cases = [
        f"postgresql://hub:{PASSWORD}@127.0.0.1:{free_port()}/none",
        f"sqlite:///{tmp_path}/file/c.db",
    ]
    (tmp_path / "damaged.db").write_bytes(b"not a database" * 1000)
    cases.append(f"sqlite:///{tmp_path}/damaged.db")
    for url in cases:
        with pytest.raises(StoreFailed) as failed:
            Database(url)
        assert PASSWORD not in str(failed.value)
        assert len(str(failed.value).splitlines()) == 1


def test_a_database_whose_text_is_not_unicode_is_refused_in_one_line(postgres: str) -> None:
    engine = engine_of(postgres).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for encoding in ("SQL_ASCII", "LATIN1"):
            made = f"CREATE DATABASE {encoding} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
            connection.execute(sa.text(made))
    engine.dispose()
    for encoding in ("SQL_ASCII", "LATIN1"):
        with pytest.raises(BadInput, match=f"has the encoding {encoding}; .* 'UTF8'") as refused:
            Database(postgres.replace("/postgres", f"/{encoding.lower()}"))
        assert len(str(refused.value).splitlines()) == 1
        assert PASSWORD not in str(refused.value)


def test_a_wrong_password_is_refused_without_saying_it(postgres: str) -> None:
    with pytest.raises(StoreFailed, match="authentication") as failed:
        Database(postgres.replace(PASSWORD, "guess-who"))
    assert "guess-who" not in str(failed.value)


@pytest.mark.parametrize(
    "url", ["nonsense", "mysql://h/n", "postgresql://u:secret@h:port/n", "sqlite+aiosqlite:///x"]
)
def test_what_is_no_url_of_ours_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="the database") as refused:
        Database(url)
    assert "secret" not in str(refused.value)
