"""What an open transaction hides: where the log ends behind it, and since when."""

from __future__ import annotations

from alembic import op

revision = "1.13"
down_revision = "1.12"

HIDDEN = """
ALTER TABLE onceover.kafka_partition ADD COLUMN high_watermark bigint, ADD COLUMN hidden_since timestamptz;
COMMENT ON COLUMN onceover.kafka_partition.high_watermark IS
  'Where the log ended; beyond end_offset, the last stable offset, an open transaction hides records. NULL: unknown.';
COMMENT ON COLUMN onceover.kafka_partition.hidden_since IS
  'When ingest first saw that a transaction was open at end_offset; NULL: none is.';
COMMENT ON COLUMN onceover.pipeline.log_retention IS
  'How long the topic keeps records, by retention.ms or as retention.bytes lets expect; NULL: for ever, or unknown.';
"""


def upgrade() -> None:
    op.execute(HIDDEN)
