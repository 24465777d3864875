"""Records that the contract's SQL cannot be evaluated for, and the ranges in which one is searched for."""

from __future__ import annotations

from alembic import op

revision = "1.12"
down_revision = "1.11"

POISON = """
CREATE TABLE onceover.poison_record (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  record_offset bigint NOT NULL,
  contract_version integer NOT NULL,
  reason text NOT NULL,
  error text NOT NULL,
  found_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (pipeline, generation, kafka_partition, record_offset, contract_version)
);
COMMENT ON TABLE onceover.poison_record IS
  'Records that the SQL of a contract version is not evaluated for: Spark''s process died of them, or did not end.';
COMMENT ON COLUMN onceover.poison_record.error IS 'What ended the evaluation.';

CREATE TABLE onceover.suspect_range (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  contract_version integer NOT NULL,
  why text NOT NULL,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (pipeline, generation, kafka_partition),
  CHECK (start_offset < end_offset)
);
COMMENT ON TABLE onceover.suspect_range IS
  'Offsets of which a batch failed by a record: its Kafka partition waits while ingest searches for the record.';
"""


def upgrade() -> None:
    op.execute(POISON)
