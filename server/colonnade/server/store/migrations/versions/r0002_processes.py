"""Several processes: leases with fencing tokens, sessions by process, messages between them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def _name(column: str, *, key: bool = False) -> "sa.Column[str]":
    return sa.Column(column, sa.String(200), primary_key=key, nullable=False)


def upgrade() -> None:
    """Add the tables, and a lease, free, for every job that has not ended."""
    serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    process = sa.Column("process", sa.String(200), nullable=False, server_default="")
    op.add_column("parties", process)
    seen = sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False)
    op.create_table("processes", _name("name", key=True), seen)
    token = sa.Column("token", sa.BigInteger, nullable=False)
    op.create_table("leases", _name("job_id", key=True), _name("owner"), token)
    for table, about, also in (
        ("relay_up", "job_id", ("sender", "kind")),
        ("relay_down", "party", ("code",)),
    ):
        op.create_table(
            table,
            sa.Column("id", serial, primary_key=True, autoincrement=True),
            _name(about),
            *map(_name, also),
            sa.Column("body", sa.LargeBinary, nullable=False),
        )
        op.create_index(f"ix_{table}_{about}", table, [about])
    op.execute(
        "INSERT INTO leases (job_id, owner, token) SELECT job_id, '', 0 FROM jobs "
        "WHERE state IN ('proposed', 'running')"
    )
    op.execute("UPDATE about SET schema_version = 5")
