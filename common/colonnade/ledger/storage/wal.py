"""SQLite's write-ahead log: made as large as it gets, once, and kept."""

import ctypes

import apsw

# An entry has some 400 bytes: small pages make small commits.
PAGE_BYTES = 1024
# Pages in the log before it is copied into the database.
CHECKPOINT_PAGES = 256


def grow_log(database: apsw.Connection) -> None:
    """Make the log as large as it gets, once, and have it kept.

    Commits then overwrite blocks that the file already has. Growing the file with each commit
    makes every sync a metadata write too, ten times slower on ext4.
    """
    keep_log(database)
    with database:
        filler = (CHECKPOINT_PAGES + 16) * PAGE_BYTES
        database.execute("INSERT OR REPLACE INTO body VALUES (-1, zeroblob(?))", (filler,))
    with database:
        database.execute("DELETE FROM body WHERE seq = -1")
    database.execute("PRAGMA wal_checkpoint(RESTART)")


def renew_log(database: apsw.Connection) -> None:
    """Cut the log off and grow another: a log keeps what was deleted until it is written over.

    The database itself keeps nothing: its connection has ``secure_delete``.
    """
    database.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    grow_log(database)


def keep_log(database: apsw.Connection) -> None:
    """Have SQLite leave the log when the database is closed, and put zeros for what it deletes."""
    database.execute("PRAGMA secure_delete = ON")
    keep = ctypes.c_int(1)
    database.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(keep))
