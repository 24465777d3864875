"""The sink of each batch: whether its rows were added before its landings counted, or with them."""

from __future__ import annotations

from alembic import op

revision = "1.7"
down_revision = "1.6"

SINKS = """
ALTER TABLE onceover.batch ADD COLUMN sink text NOT NULL DEFAULT 'append';
COMMENT ON COLUMN onceover.batch.sink IS
  'How the batch added its rows: append, before its landings counted; transactional, in the same transaction.';
"""


def upgrade() -> None:
    op.execute(SINKS)
