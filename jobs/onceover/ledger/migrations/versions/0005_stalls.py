"""What shows that a pipeline makes no progress: its loop, its watermark, and records that wait in Kafka."""

from __future__ import annotations

from alembic import op

revision = "1.5"
down_revision = "1.4"

STALLS = """
ALTER TABLE onceover.driver ADD COLUMN progress_at timestamptz NOT NULL DEFAULT clock_timestamp();
COMMENT ON COLUMN onceover.driver.progress_at IS
  'When a turn of the loop last ended well; the heartbeat beats in a thread of its own, whatever hangs or fails.';

ALTER TABLE onceover.pipeline ADD COLUMN held_since timestamptz;
COMMENT ON COLUMN onceover.pipeline.held_since IS
  'Since when the watermark has not moved although a Kafka partition is beyond it; NULL: nothing holds it.';

ALTER TABLE onceover.kafka_partition ADD COLUMN read_until timestamptz;
COMMENT ON COLUMN onceover.kafka_partition.read_until IS
  'No unread record is older: when all was read, or the oldest Kafka timestamp of the last batch. NULL: unknown.';
COMMENT ON COLUMN onceover.kafka_partition.caught_up_since IS
  'Since when nothing with an event time arrived, as of the last moment at which the log was read to its end.';
"""


def upgrade() -> None:
    op.execute(STALLS)
