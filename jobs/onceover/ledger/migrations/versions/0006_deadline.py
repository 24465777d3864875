"""Since when somebody knows that a window is overdue, so that they are told once."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"

TABLES = """
ALTER TABLE onceover."window" ADD overdue_told_at timestamptz;
COMMENT ON COLUMN onceover."window".overdue_told_at IS
  'When somebody was told that it was not certified within its deadline; NULL again once it is certified.';
"""


def upgrade() -> None:
    op.execute(TABLES)
