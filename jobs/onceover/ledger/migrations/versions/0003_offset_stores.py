"""A control row may not know what its window's rows count, a repair may be left to another, and offsets in the ledger
or beside another store."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"

# PostgreSQL has these columns' sums with NULL be NULL: what is added to an unknown count leaves it unknown.
TABLES = """
ALTER TABLE onceover."window" ALTER records DROP NOT NULL, ALTER high1 DROP NOT NULL, ALTER low1 DROP NOT NULL,
  ALTER high2 DROP NOT NULL, ALTER low2 DROP NOT NULL,
  ADD CHECK (num_nulls(records, high1, low1, high2, low2) IN (0, 5));
COMMENT ON COLUMN onceover."window".records IS
  'How many records the rows in the aggregates count; NULL: somebody changed them, only a repair will tell.';

ALTER TABLE onceover.repair DROP CONSTRAINT repair_state_check;
ALTER TABLE onceover.repair ADD CONSTRAINT repair_state_check CHECK (state IN
  ('planned', 'claimed', 'published', 'confirmed', 'revoked', 'failed', 'unneeded', 'left', 'restored'));

CREATE TABLE onceover.stored_offset (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  kafka_partition integer NOT NULL,
  next_offset bigint NOT NULL CHECK (next_offset >= 0),
  topic_id text NOT NULL,
  PRIMARY KEY (pipeline, kafka_partition)
);
COMMENT ON TABLE onceover.stored_offset IS
  'The offset store `postgres`: where reading goes on, of the topic of that ID.';

CREATE TABLE onceover.offset_place (
  store text NOT NULL,
  place text NOT NULL,
  pipeline text REFERENCES onceover.pipeline,
  topic_id text,
  PRIMARY KEY (store, place)
);
COMMENT ON TABLE onceover.offset_place IS
  'Whose offsets a store holds, and of which topic: most stores'' formats have no place for that. Two never share one.';

CREATE TABLE onceover.offset_change (
  change_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  store text NOT NULL,
  who text NOT NULL,
  why text NOT NULL,
  before jsonb,
  after jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON onceover.offset_change (pipeline);
COMMENT ON TABLE onceover.offset_change IS 'Where somebody said that reading goes on, by Kafka partition.';

ALTER TABLE onceover.kafka_partition ADD truncated_from bigint;
COMMENT ON COLUMN onceover.kafka_partition.truncated_from IS
  'Where the stored offset stood when the log was found to end before it; NULL once the log reaches there again.';
"""


def upgrade() -> None:
    op.execute(TABLES)
