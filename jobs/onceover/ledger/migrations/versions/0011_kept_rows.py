"""Kept rows come back as they were: jsonb knows no -0, which is another row by its fingerprint."""

from __future__ import annotations

from alembic import op

revision = "1.11"
down_revision = "1.10"


def upgrade() -> None:
    op.execute("ALTER TABLE onceover.revision_row ALTER COLUMN aggregates TYPE json")
