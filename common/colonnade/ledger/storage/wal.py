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
        database.execute("INSERT INTO body VALUES (-1, zeroblob(?))", (filler,))
    with database:
        database.execute("DELETE FROM body WHERE seq = -1")
    database.execute("PRAGMA wal_checkpoint(RESTART)")


def keep_log(database: apsw.Connection) -> None:
    """Have SQLite leave the log where it is when the database is closed."""
    keep = ctypes.c_int(1)
    database.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(keep))
