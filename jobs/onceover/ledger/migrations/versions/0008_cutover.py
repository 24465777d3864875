"""Contracts that change: who changed one and why, and from which offset on a version is in force."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"

TABLES = """
ALTER TABLE onceover.contract ADD who text, ADD why text;
COMMENT ON COLUMN onceover.contract.who IS 'Who cut over to this version; NULL for the one it began with.';

CREATE TABLE onceover.cutover (
  pipeline text NOT NULL,
  version integer NOT NULL,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  first_offset bigint NOT NULL,
  PRIMARY KEY (pipeline, version, generation, kafka_partition),
  FOREIGN KEY (pipeline, version) REFERENCES onceover.contract
);
COMMENT ON COLUMN onceover.cutover.first_offset IS
  'The first offset that has this version or a later one; a Kafka partition without a row has it from its start.';
"""


def upgrade() -> None:
    op.execute(TABLES)
