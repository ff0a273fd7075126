"""Alembic's environment: on the connection and in the transaction of the caller."""

from alembic import context

from colonnade.server.store.tables import TABLES

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=TABLES,
    transactional_ddl=False,
    render_as_batch=True,
)
context.run_migrations()
