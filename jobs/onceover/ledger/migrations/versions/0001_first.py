"""The first ledger: pipelines, batches, landings, windows, certificates, findings and repairs."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

DIGEST = """
  records bigint NOT NULL DEFAULT 0,
  high1 bigint NOT NULL DEFAULT 0, low1 bigint NOT NULL DEFAULT 0,
  high2 bigint NOT NULL DEFAULT 0, low2 bigint NOT NULL DEFAULT 0"""

TABLES = f"""
CREATE SCHEMA IF NOT EXISTS aggregates;
COMMENT ON SCHEMA aggregates IS 'What readers query: one table a pipeline.';
CREATE SCHEMA IF NOT EXISTS staging;
COMMENT ON SCHEMA staging IS 'Rows on their way into aggregates; nothing here outlives its batch or repair.';

CREATE TABLE onceover.pipeline (
  name text PRIMARY KEY,
  contract_version integer NOT NULL,
  watermark timestamptz,
  every_window_closed boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE onceover.contract (
  pipeline text NOT NULL REFERENCES onceover.pipeline DEFERRABLE INITIALLY DEFERRED,
  version integer NOT NULL,
  fingerprint text NOT NULL,
  definition jsonb NOT NULL,
  columns jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (pipeline, version)
);

CREATE TABLE onceover.driver (
  pipeline text PRIMARY KEY REFERENCES onceover.pipeline,
  epoch bigint NOT NULL,
  owner text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL
);

CREATE TABLE onceover.batch (
  batch_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  epoch bigint NOT NULL,
  contract_version integer NOT NULL,
  state text NOT NULL DEFAULT 'begun' CHECK (state IN ('begun', 'landed', 'superseded')),
  refill boolean NOT NULL DEFAULT false,
  begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  landed_at timestamptz,
  committed_at timestamptz,
  superseded_at timestamptz,
  superseded_why text
);
CREATE INDEX ON onceover.batch (pipeline, batch_id) WHERE state = 'begun';
CREATE INDEX ON onceover.batch (pipeline, batch_id DESC);

CREATE TABLE onceover.batch_range (
  batch_id bigint NOT NULL REFERENCES onceover.batch,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  max_event_time timestamptz,{DIGEST},
  PRIMARY KEY (batch_id, generation, kafka_partition, start_offset),
  CHECK (start_offset < end_offset)
);
CREATE INDEX ON onceover.batch_range (generation, kafka_partition, end_offset);

CREATE TABLE onceover.landing (
  landing_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  batch_id bigint NOT NULL REFERENCES onceover.batch,
  pipeline text NOT NULL,
  window_start timestamptz,
  quarantine_day date,
  byte_start bigint NOT NULL,
  byte_end bigint NOT NULL,
  proved boolean NOT NULL,
  late boolean NOT NULL DEFAULT false,{DIGEST},
  CHECK ((window_start IS NULL) <> (quarantine_day IS NULL)),
  CHECK (byte_start < byte_end)
);
CREATE INDEX ON onceover.landing (pipeline, window_start);
CREATE INDEX ON onceover.landing (batch_id);

CREATE TABLE onceover.landing_part (
  landing_id bigint NOT NULL REFERENCES onceover.landing,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,{DIGEST},
  PRIMARY KEY (landing_id, generation, kafka_partition)
);

CREATE TABLE onceover.kafka_partition (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  topic_id text NOT NULL,
  origin bigint NOT NULL,
  frontier bigint NOT NULL,
  reach bigint NOT NULL,
  end_offset bigint NOT NULL,
  max_event_time timestamptz,
  caught_up_since timestamptz,
  PRIMARY KEY (pipeline, generation, kafka_partition)
);

CREATE TABLE onceover."window" (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  window_start timestamptz NOT NULL,
  window_end timestamptz NOT NULL,
  version bigint NOT NULL DEFAULT 0,
  revision integer NOT NULL DEFAULT 0,
  certificate_id bigint,
  tries integer NOT NULL DEFAULT 0,
  blocked_at timestamptz,
  blocked_why text,
  token bigint NOT NULL DEFAULT 0,
  claimed_by text,
  claimed_until timestamptz,{DIGEST},
  PRIMARY KEY (pipeline, window_start)
);
COMMENT ON COLUMN onceover."window".records IS 'Control row: the records and digest that the aggregates count now.';

CREATE TABLE onceover.repair_request (
  request_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  who text NOT NULL,
  why text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE onceover.repair (
  repair_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  request_id bigint NOT NULL REFERENCES onceover.repair_request,
  pipeline text NOT NULL,
  window_start timestamptz NOT NULL,
  state text NOT NULL DEFAULT 'planned'
    CHECK (state IN ('planned', 'claimed', 'published', 'confirmed', 'revoked', 'failed', 'unneeded')),
  reason text,
  token bigint,
  findings jsonb NOT NULL,
  started_at timestamptz,
  finished_at timestamptz,
  lines_read bigint,
  bytes_read bigint,
  duplicates bigint,
  blocked boolean NOT NULL DEFAULT false,
  before jsonb,
  after jsonb,
  UNIQUE (request_id, window_start)
);
CREATE INDEX ON onceover.repair (pipeline, window_start);

CREATE TABLE onceover.certificate (
  certificate_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL,
  window_start timestamptz NOT NULL,
  window_end timestamptz NOT NULL,
  version bigint NOT NULL,
  basis text NOT NULL CHECK (basis IN ('ledger', 'raw')),
  contract_version integer NOT NULL,
  code_version text NOT NULL,
  landing_set bigint[] NOT NULL,
  accounted jsonb NOT NULL,
  frozen_length bigint NOT NULL,{DIGEST},
  aggregate_rows bigint,
  aggregate_hash text,
  repair_id bigint REFERENCES onceover.repair,
  who text NOT NULL,
  why text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz,
  revoked_why text
);
CREATE INDEX ON onceover.certificate (pipeline, window_start);
ALTER TABLE onceover."window" ADD FOREIGN KEY (certificate_id) REFERENCES onceover.certificate;

CREATE TABLE onceover.finding (
  finding_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  window_start timestamptz,
  kind text NOT NULL,
  evidence jsonb NOT NULL,
  first_seen_at timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  resolved_at timestamptz,
  resolution text
);
CREATE UNIQUE INDEX ON onceover.finding (pipeline, window_start, kind) NULLS NOT DISTINCT WHERE resolved_at IS NULL;

CREATE TABLE onceover.revision (
  pipeline text NOT NULL,
  window_start timestamptz NOT NULL,
  revision integer NOT NULL,
  repair_id bigint NOT NULL REFERENCES onceover.repair,
  replaced_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (pipeline, window_start, revision)
);
COMMENT ON TABLE onceover.revision IS 'Aggregates that a repair replaced; their rows, as they stood, in revision_row.';

CREATE TABLE onceover.revision_row (
  pipeline text NOT NULL,
  window_start timestamptz NOT NULL,
  revision integer NOT NULL,
  aggregates jsonb NOT NULL,
  FOREIGN KEY (pipeline, window_start, revision) REFERENCES onceover.revision
);
CREATE INDEX ON onceover.revision_row (pipeline, window_start, revision);
"""


def upgrade() -> None:
    op.execute(TABLES)
