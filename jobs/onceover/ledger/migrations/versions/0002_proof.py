"""What a certificate states in full, refills, accepted losses, decisions on conflicts, and restored revisions."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

TABLES = """
ALTER TABLE onceover.certificate
  ADD frontiers jsonb NOT NULL DEFAULT '[]',
  ADD aggregate_records bigint,
  ADD lines_read bigint,
  ADD duplicates bigint,
  ADD before jsonb,
  ADD after jsonb,
  ADD losses bigint[] NOT NULL DEFAULT '{}',
  ADD decisions bigint[] NOT NULL DEFAULT '{}',
  ADD verdict text NOT NULL DEFAULT 'exact' CHECK (verdict IN ('exact', 'exact but for accepted losses'));
COMMENT ON COLUMN onceover.certificate.accounted IS
  'Offset ranges of all landed batches then: [generation, kafka_partition, start, end].';
COMMENT ON COLUMN onceover.certificate.frontiers IS 'Frontiers then: [generation, kafka_partition, frontier].';

ALTER TABLE onceover.batch_range ADD oldest_record timestamptz;
COMMENT ON COLUMN onceover.batch_range.oldest_record IS
  'Smallest Kafka timestamp read: with the topic''s retention it tells how long the log still holds the range.';

ALTER TABLE onceover.pipeline ADD log_retention interval;
COMMENT ON COLUMN onceover.pipeline.log_retention IS 'The topic''s retention when it was last asked; NULL: for ever.';

CREATE TABLE onceover.refill (
  refill_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  request_id bigint NOT NULL REFERENCES onceover.repair_request,
  batch_id bigint REFERENCES onceover.batch,
  state text NOT NULL DEFAULT 'wanted' CHECK (state IN ('wanted', 'landed', 'refused')),
  reason text,
  created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  CHECK (start_offset < end_offset)
);
CREATE UNIQUE INDEX ON onceover.refill (pipeline, generation, kafka_partition, start_offset) WHERE state = 'wanted';
COMMENT ON TABLE onceover.refill IS 'Offset ranges to read again from Kafka, by whoever is the driver.';

CREATE TABLE onceover.accepted_loss (
  loss_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  first_window timestamptz NOT NULL,
  end_window timestamptz NOT NULL,
  who text NOT NULL,
  why text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK (start_offset < end_offset),
  CHECK (first_window < end_window)
);
CREATE INDEX ON onceover.accepted_loss (pipeline);

CREATE TABLE onceover.decision (
  decision_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  window_start timestamptz NOT NULL,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  record_offset bigint NOT NULL,
  kept text NOT NULL,
  who text NOT NULL,
  why text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON onceover.decision (pipeline, window_start);
COMMENT ON TABLE onceover.decision IS
  'Which of several contents of one ID counts, because somebody said so; the last one about an ID holds.';

CREATE TABLE onceover.audit (
  audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  kind text NOT NULL CHECK (kind IN ('window', 'log')),
  window_start timestamptz,
  window_end timestamptz,
  who text NOT NULL,
  requested_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  result jsonb,
  CHECK (kind = 'log' OR window_start IS NOT NULL)
);
CREATE INDEX ON onceover.audit (pipeline, audit_id);
COMMENT ON TABLE onceover.audit IS 'Re-checks of certificates against raw, and of raw and aggregates against the log.';

ALTER TABLE onceover.repair DROP CONSTRAINT repair_state_check;
ALTER TABLE onceover.repair ADD CONSTRAINT repair_state_check CHECK (state IN
  ('planned', 'claimed', 'published', 'confirmed', 'revoked', 'failed', 'unneeded', 'restored'));

CREATE INDEX ON onceover.batch_range (generation, kafka_partition, start_offset, end_offset);
CREATE INDEX ON onceover.certificate (certificate_id) INCLUDE (version);
"""


def upgrade() -> None:
    op.execute(TABLES)
