"""How long a batch waited between its submission and its start."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"

TABLES = """
ALTER TABLE onceover.batch ADD scheduling_delay_ms bigint CHECK (scheduling_delay_ms >= 0);
COMMENT ON COLUMN onceover.batch.scheduling_delay_ms IS
  'From the submission of the batch to its start; NULL for a refill, which is not submitted.';
"""


def upgrade() -> None:
    op.execute(TABLES)
