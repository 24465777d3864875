"""Alembic's entry point, which runs the versions beside this file over the connection of `ledger.migrate`."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table_schema="onceover", transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
