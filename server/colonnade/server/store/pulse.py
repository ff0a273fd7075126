"""A process's heartbeat in PostgreSQL, and how it hears that another one has something for it.

A thread with a connection of its own: a long step of a job must not look like a death. What it
hears only wakes; everything is read from the tables, also without a word, at every tick.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from colonnade.server.store.peers import CHANNEL, EVERYBODY, JOB_CHANGED, LEASE_S
from colonnade.server.store.tables import PROCESSES

logger = logging.getLogger(__name__)
_BEAT_S = 1.0


class Pulse:
    """Keeps a process's lease alive until it is stopped.

    Parameters
    ----------
    woken
        Called from the thread when there is something to collect.
    changed
        Called from the thread with the name of a job that changed.
    """

    def __init__(
        self,
        engine: sa.Engine,
        process: str,
        woken: Callable[[], None],
        changed: Callable[[str], None],
    ) -> None:
        self._engine, self._process = engine, process
        self._woken, self._changed = woken, changed
        driver: Any = engine.dialect.loaded_dbapi  # which is an extra of this package
        self._failures = (sa.exc.SQLAlchemyError, OSError, driver.Error)
        self._stop, self._beat_at = threading.Event(), time.monotonic()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stop.set()
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether the lease was renewed in time."""
        return time.monotonic() - self._beat_at < LEASE_S

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._engine.connect() as connection:
                    self._hold(connection.execution_options(isolation_level="AUTOCOMMIT"))
            except self._failures as error:  # the worker's own call decides what it means
                logger.warning("pulse_lost error=%s", type(error).__name__)
                self._stop.wait(_BEAT_S)

    def _hold(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql(f"LISTEN {CHANNEL}")
        driver: Any = connection.connection.driver_connection
        now = {"seen_at": sa.func.clock_timestamp()}
        # Its row may be gone: after a very long pause, or when the database's clock was set.
        beat = (
            insert(PROCESSES)
            .values(name=self._process, **now)
            .on_conflict_do_update(index_elements=[PROCESSES.c.name], set_=now)
        )
        while not self._stop.is_set():
            connection.execute(beat)
            self._beat_at = time.monotonic()
            until = self._beat_at + _BEAT_S
            while (left := until - time.monotonic()) > 0 and not self._stop.is_set():
                for notification in driver.notifies(timeout=min(left, 0.2), stop_after=1):
                    self._notified(notification.payload)

    def _notified(self, payload: str) -> None:
        if payload.startswith(JOB_CHANGED):
            self._changed(payload.removeprefix(JOB_CHANGED))
        elif payload in (self._process, EVERYBODY):
            self._woken()
