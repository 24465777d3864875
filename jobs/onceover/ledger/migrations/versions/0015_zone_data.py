"""The time zone data that records were evaluated with: what a contract's SQL makes of a zone's name depends on it."""

from __future__ import annotations

from alembic import op

revision = "1.15"
down_revision = "1.14"

ZONE_DATA = """
ALTER TABLE onceover.driver_epoch ADD COLUMN zone_data text;
COMMENT ON COLUMN onceover.driver_epoch.zone_data IS 'The release of Java''s time zone data, such as 2025b.';
"""


def upgrade() -> None:
    op.execute(ZONE_DATA)
