"""The coordinator's tables: the same in SQLite and in PostgreSQL."""

import sqlalchemy as sa

SCHEMA_VERSION = 5  # a program older than Alembic here knows its own alone, and refuses others

TABLES = sa.MetaData()
_Name, _Bytes = sa.String(200), sa.LargeBinary

ABOUT = sa.Table("about", TABLES, sa.Column("schema_version", sa.Integer, primary_key=True))
PARTIES = sa.Table(
    "parties",
    TABLES,
    sa.Column("name", _Name, primary_key=True),
    sa.Column("ledger_id", _Bytes, nullable=False),
    sa.Column("ledger_key", _Bytes, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("latest", _Bytes, nullable=False),
    sa.Column("latest_seq", sa.BigInteger, nullable=False),
    sa.Column("offer", _Bytes, nullable=False),
    sa.Column("head", _Bytes, nullable=False),
    sa.Column("told_at", sa.Double, nullable=False),
    sa.Column("process", _Name, nullable=False, server_default=""),
)
JOBS = sa.Table(
    "jobs",
    TABLES,
    sa.Column("job_id", _Name, primary_key=True),
    sa.Column("spec", _Bytes, nullable=False),
    sa.Column("submitted_by", _Name, nullable=False),
    sa.Column("submitted_at", sa.Double, nullable=False),
    sa.Column("state", _Name, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("ended_at", sa.Double, nullable=False),
    sa.Column("outcome", _Bytes, nullable=False),
)
DECISIONS = sa.Table(
    "decisions",
    TABLES,
    sa.Column("job_id", _Name, primary_key=True),
    sa.Column("party", _Name, primary_key=True),
    sa.Column("accepted", sa.Boolean, nullable=False),
    sa.Column("code", _Name, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("waiting", sa.Boolean, nullable=False),
)


def _exchange(name: str) -> sa.Table:
    return sa.Table(
        name,
        TABLES,
        sa.Column("job_id", _Name, primary_key=True),
        sa.Column("round", sa.Integer, primary_key=True),
        sa.Column("party", _Name, primary_key=True),
        sa.Column("body", _Bytes, nullable=False),
        sqlite_with_rowid=False,
    )


OUTBOX, INBOX = _exchange("outbox"), _exchange("inbox")
ITERATES = sa.Table(
    "iterates",
    TABLES,
    sa.Column("job_id", _Name, primary_key=True),
    sa.Column("round", sa.Integer, primary_key=True),
    sa.Column("body", _Bytes, nullable=False),
    sa.Column("chain", _Bytes, nullable=False),
)
COUNTS = ("payload_bytes", "wire_bytes", "messages", "retry_bytes")
UPLINK = sa.Table(
    "uplink",
    TABLES,
    sa.Column("job_id", _Name, primary_key=True),
    sa.Column("round", sa.Integer, primary_key=True),
    sa.Column("party", _Name, primary_key=True),
    sa.Column("kind", _Name, primary_key=True),
    *(sa.Column(name, sa.BigInteger, nullable=False) for name in COUNTS),
    sqlite_with_rowid=False,
)

# What several processes on one PostgreSQL share; in SQLite these stay empty.
_Serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
PROCESSES = sa.Table(
    "processes",
    TABLES,
    sa.Column("name", _Name, primary_key=True),
    sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
)
LEASES = sa.Table(
    "leases",
    TABLES,
    sa.Column("job_id", _Name, primary_key=True),
    sa.Column("owner", _Name, nullable=False),
    sa.Column("token", sa.BigInteger, nullable=False),
)
RELAY_UP = sa.Table(
    "relay_up",
    TABLES,
    sa.Column("id", _Serial, primary_key=True, autoincrement=True),
    sa.Column("job_id", _Name, nullable=False, index=True),
    sa.Column("sender", _Name, nullable=False),
    sa.Column("kind", _Name, nullable=False),
    sa.Column("body", _Bytes, nullable=False),
)
RELAY_DOWN = sa.Table(
    "relay_down",
    TABLES,
    sa.Column("id", _Serial, primary_key=True, autoincrement=True),
    sa.Column("party", _Name, nullable=False, index=True),
    sa.Column("code", _Name, nullable=False),
    sa.Column("body", _Bytes, nullable=False),
)
