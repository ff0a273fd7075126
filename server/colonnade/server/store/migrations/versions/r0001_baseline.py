"""The schema of version 4, before there were migrations."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _name(column: str, *, key: bool = False) -> "sa.Column[str]":
    return sa.Column(column, sa.String(200), primary_key=key, nullable=False)


def _bytes(column: str) -> "sa.Column[bytes]":
    return sa.Column(column, sa.LargeBinary, nullable=False)


def upgrade() -> None:
    """Create the tables."""
    about = op.create_table("about", sa.Column("schema_version", sa.Integer, primary_key=True))
    op.create_table(
        "parties",
        _name("name", key=True),
        _bytes("ledger_id"),
        _bytes("ledger_key"),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        _bytes("latest"),
        sa.Column("latest_seq", sa.BigInteger, nullable=False),
        _bytes("offer"),
        _bytes("head"),
        sa.Column("told_at", sa.Double, nullable=False),
    )
    op.create_table(
        "jobs",
        _name("job_id", key=True),
        _bytes("spec"),
        _name("submitted_by"),
        sa.Column("submitted_at", sa.Double, nullable=False),
        _name("state"),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("ended_at", sa.Double, nullable=False),
        _bytes("outcome"),
    )
    op.create_table(
        "decisions",
        _name("job_id", key=True),
        _name("party", key=True),
        sa.Column("accepted", sa.Boolean, nullable=False),
        _name("code"),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("waiting", sa.Boolean, nullable=False),
    )
    for table in ("outbox", "inbox"):
        op.create_table(
            table,
            _name("job_id", key=True),
            sa.Column("round", sa.Integer, primary_key=True),
            _name("party", key=True),
            _bytes("body"),
            sqlite_with_rowid=False,
        )
    op.create_table(
        "iterates",
        _name("job_id", key=True),
        sa.Column("round", sa.Integer, primary_key=True),
        _bytes("body"),
        _bytes("chain"),
    )
    counts = ("payload_bytes", "wire_bytes", "messages", "retry_bytes")
    op.create_table(
        "uplink",
        _name("job_id", key=True),
        sa.Column("round", sa.Integer, primary_key=True),
        _name("party", key=True),
        _name("kind", key=True),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in counts),
        sqlite_with_rowid=False,
    )
    op.bulk_insert(about, [{"schema_version": 4}])
