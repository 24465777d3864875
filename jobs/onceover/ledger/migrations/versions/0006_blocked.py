"""Kafka partitions that wait at offsets which no reader gets."""

from __future__ import annotations

from alembic import op

revision = "1.6"
down_revision = "1.5"

BLOCKED = """
CREATE TABLE onceover.blocked (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  why text NOT NULL,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  tried_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (pipeline, generation, kafka_partition),
  CHECK (start_offset < end_offset)
);
COMMENT ON TABLE onceover.blocked IS
  'Offsets that Kafka''s log holds and no reader gets: ingest waits before them, and reads the other Kafka partitions.';
COMMENT ON COLUMN onceover.blocked.tried_at IS 'When a read of them failed last: ingest tries again from time to time.';
"""


def upgrade() -> None:
    op.execute(BLOCKED)
