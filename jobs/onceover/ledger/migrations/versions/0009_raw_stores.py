"""The raw store of each pipeline: its files are in no other one."""

from __future__ import annotations

from alembic import op

revision = "1.9"
down_revision = "1.8"

RAW_STORES = """
ALTER TABLE onceover.pipeline ADD COLUMN raw_store text NOT NULL DEFAULT 'hdfs';
COMMENT ON COLUMN onceover.pipeline.raw_store IS 'The [storage] raw_store under which the first batch landed.';
"""


def upgrade() -> None:
    op.execute(RAW_STORES)
