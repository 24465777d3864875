"""The baseline: all tables of the ledger, as the modules of `schema` declare them."""

from __future__ import annotations

from alembic import op

from onceover.ledger.schema import batches, decisions, pipelines, windows

revision = "2.1"
down_revision = None


def upgrade() -> None:
    for part in (pipelines, batches, windows, decisions):
        op.execute(part.TABLES)
