"""What was released from quarantine, by whom, why, and exactly which IDs."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"

TABLES = """
CREATE TABLE onceover.release (
  batch_id bigint PRIMARY KEY REFERENCES onceover.batch,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  who text NOT NULL,
  why text NOT NULL
);
CREATE INDEX ON onceover.release (pipeline);
COMMENT ON TABLE onceover.release IS 'Batches that read no offsets, but landed records out of quarantine.';

CREATE TABLE onceover.released (
  batch_id bigint NOT NULL REFERENCES onceover.release,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  PRIMARY KEY (batch_id, generation, kafka_partition, start_offset),
  CHECK (start_offset < end_offset)
);
CREATE INDEX ON onceover.released (generation, kafka_partition, start_offset);
COMMENT ON TABLE onceover.released IS
  'The IDs of each release: they have the contract''s version of that batch, and no other landing counts them.';
"""


def upgrade() -> None:
    op.execute(TABLES)
