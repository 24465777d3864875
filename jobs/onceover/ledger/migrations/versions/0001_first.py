"""The ledger's schema: pipelines, batches, landings, windows, certificates, findings, repairs, and decisions.

A revision is `1.` and the number of its file. Plain numbers of four digits name another chain, whose databases
`onceover.ledger.database` refuses.
"""

from __future__ import annotations

from alembic import op

revision = "1.1"
down_revision = None

DIGEST = """
  records bigint NOT NULL DEFAULT 0,
  high1 bigint NOT NULL DEFAULT 0, low1 bigint NOT NULL DEFAULT 0,
  high2 bigint NOT NULL DEFAULT 0, low2 bigint NOT NULL DEFAULT 0"""

TABLES = f"""
CREATE SCHEMA IF NOT EXISTS aggregates;
COMMENT ON SCHEMA aggregates IS 'Aggregates, which readers query: one table a pipeline.';
CREATE SCHEMA IF NOT EXISTS staging;
COMMENT ON SCHEMA staging IS 'Rows on their way into aggregates; nothing here outlives its batch or repair.';

CREATE TABLE onceover.pipeline (
  name text PRIMARY KEY,
  contract_version integer NOT NULL,
  watermark timestamptz,
  every_window_closed boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  log_retention interval,
  batches_landed bigint NOT NULL DEFAULT 0,
  last_batch bigint
);
COMMENT ON COLUMN onceover.pipeline.last_batch IS 'The batch that landed last, refills left out.';
COMMENT ON COLUMN onceover.pipeline.log_retention IS 'The topic''s retention as last read from Kafka; NULL: for ever.';

CREATE TABLE onceover.contract (
  pipeline text NOT NULL REFERENCES onceover.pipeline DEFERRABLE INITIALLY DEFERRED,
  version integer NOT NULL,
  fingerprint text NOT NULL,
  definition jsonb NOT NULL,
  columns jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  who text,
  why text,
  PRIMARY KEY (pipeline, version)
);
COMMENT ON COLUMN onceover.contract.who IS 'Author of the cutover to this version; NULL for the first version.';

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
  'The first offset of this version or a later one; a Kafka partition without a row has it from its start.';

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
  superseded_why text,
  scheduling_delay_ms bigint CHECK (scheduling_delay_ms >= 0),
  batches integer NOT NULL DEFAULT 1,
  rolled_up_at timestamptz
);
CREATE INDEX ON onceover.batch (pipeline, batch_id) WHERE state = 'begun';
CREATE INDEX ON onceover.batch (pipeline, batch_id DESC);
CREATE INDEX ON onceover.batch (pipeline) WHERE state = 'superseded';
CREATE INDEX ON onceover.batch (pipeline, batch_id) WHERE state = 'landed' AND NOT refill AND rolled_up_at IS NULL;
COMMENT ON COLUMN onceover.batch.batches IS
  'The number of batches that a rollup joined to it: its rows are as if it had read and landed all of them.';
COMMENT ON COLUMN onceover.batch.rolled_up_at IS
  'When it was rolled up, or found to have none to be joined with; NULL: not yet, as Kafka may still hold its offsets.';
COMMENT ON COLUMN onceover.batch.scheduling_delay_ms IS
  'From the submission of the batch to its start; NULL for a refill, which is not submitted.';

CREATE TABLE onceover.batch_range (
  batch_id bigint NOT NULL REFERENCES onceover.batch,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  max_event_time timestamptz,{DIGEST},
  oldest_record timestamptz,
  PRIMARY KEY (batch_id, generation, kafka_partition, start_offset),
  CHECK (start_offset < end_offset)
);
CREATE INDEX ON onceover.batch_range (generation, kafka_partition, end_offset);
CREATE INDEX ON onceover.batch_range (generation, kafka_partition, start_offset, end_offset);
COMMENT ON COLUMN onceover.batch_range.oldest_record IS
  'Smallest Kafka timestamp read: with the topic''s retention, how long the log still holds the range.';

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
  CHECK (byte_start <= byte_end)
);
CREATE INDEX ON onceover.landing (pipeline, window_start, landing_id);
CREATE INDEX ON onceover.landing (batch_id);
CREATE INDEX ON onceover.landing (pipeline, quarantine_day) WHERE quarantine_day IS NOT NULL;

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
  truncated_from bigint,
  records_landed bigint NOT NULL DEFAULT 0,
  records_quarantined bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (pipeline, generation, kafka_partition)
);
COMMENT ON COLUMN onceover.kafka_partition.truncated_from IS
  'The stored offset when the log was found to end before it; NULL once the log reaches that offset again.';
COMMENT ON COLUMN onceover.kafka_partition.records_landed IS
  'Records of all landed batches, quarantine included; a record that landed twice counts twice.';
COMMENT ON COLUMN onceover.kafka_partition.records_quarantined IS 'Those of records_landed that are in quarantine.';

CREATE TABLE onceover.stored_offset (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  kafka_partition integer NOT NULL,
  next_offset bigint NOT NULL CHECK (next_offset >= 0),
  topic_id text NOT NULL,
  PRIMARY KEY (pipeline, kafka_partition)
);
COMMENT ON TABLE onceover.stored_offset IS
  'The offset store `postgres`: the next offset to read, of the topic with that ID.';

CREATE TABLE onceover.offset_place (
  store text NOT NULL,
  place text NOT NULL,
  pipeline text REFERENCES onceover.pipeline,
  topic_id text,
  PRIMARY KEY (store, place)
);
COMMENT ON TABLE onceover.offset_place IS
  'Pipeline and topic of the offsets in a store, for most formats have no field for them. Pipelines never share one.';

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
COMMENT ON TABLE onceover.offset_change IS 'Offsets that an operator set or copied, by Kafka partition.';

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
  state text NOT NULL DEFAULT 'planned' CHECK (state IN
    ('planned', 'claimed', 'published', 'confirmed', 'revoked', 'failed', 'unneeded', 'left', 'restored')),
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
  overcount bigint
    GENERATED ALWAYS AS ((before #>> '{{control,records}}')::bigint - (after #>> '{{control,records}}')::bigint) STORED,
  UNIQUE (request_id, window_start)
);
CREATE INDEX ON onceover.repair (pipeline, window_start);
CREATE INDEX ON onceover.repair (pipeline, overcount) WHERE overcount <> 0 AND state <> 'restored';
COMMENT ON COLUMN onceover.repair.overcount IS
  'Records counted too many before the repair, too few if negative; NULL: nothing published, or unknown.';

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
CREATE INDEX ON onceover.refill (batch_id);
CREATE UNIQUE INDEX ON onceover.refill (pipeline, generation, kafka_partition, start_offset) WHERE state = 'wanted';
COMMENT ON TABLE onceover.refill IS 'Offset ranges that the driver is to read again from Kafka.';

CREATE TABLE onceover.certificate (
  certificate_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL,
  window_start timestamptz NOT NULL,
  window_end timestamptz NOT NULL,
  version bigint NOT NULL,
  basis text NOT NULL CHECK (basis IN ('ledger', 'raw')),
  contract_version integer NOT NULL,
  code_version text NOT NULL,
  last_landing bigint NOT NULL,
  landings integer NOT NULL,
  accounted jsonb NOT NULL,
  frozen_length bigint NOT NULL,{DIGEST},
  aggregate_rows bigint,
  aggregate_hash text,
  repair_id bigint REFERENCES onceover.repair,
  who text NOT NULL,
  why text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz,
  revoked_why text,
  frontiers jsonb NOT NULL DEFAULT '[]',
  aggregate_records bigint,
  lines_read bigint,
  duplicates bigint,
  before jsonb,
  after jsonb,
  losses bigint[] NOT NULL DEFAULT '{{}}',
  decisions bigint[] NOT NULL DEFAULT '{{}}',
  verdict text NOT NULL DEFAULT 'exact' CHECK (verdict IN ('exact', 'exact but for accepted losses'))
);
CREATE INDEX ON onceover.certificate (pipeline, window_start);
CREATE INDEX ON onceover.certificate (certificate_id) INCLUDE (version);
COMMENT ON COLUMN onceover.certificate.last_landing IS
  'It rests on the window''s landings up to this one, 0: on none. A window''s landings are numbered as they landed.';
COMMENT ON COLUMN onceover.certificate.landings IS
  'The number of these landings then; rollups since have fewer.';
COMMENT ON COLUMN onceover.certificate.accounted IS
  'Offset ranges of all batches landed by then: [generation, kafka_partition, start, end].';
COMMENT ON COLUMN onceover.certificate.frontiers IS 'Frontiers at that time: [generation, kafka_partition, frontier].';

CREATE TABLE onceover.compaction (
  compaction_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  window_start timestamptz NOT NULL,
  certificate_id bigint NOT NULL REFERENCES onceover.certificate,
  text_bytes bigint NOT NULL,
  bytes bigint NOT NULL,
  records bigint NOT NULL,
  high1 bigint NOT NULL, low1 bigint NOT NULL,
  high2 bigint NOT NULL, low2 bigint NOT NULL,
  who text NOT NULL,
  why text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX ON onceover.compaction (pipeline, window_start, records, high1, low1, high2, low2);
COMMENT ON TABLE onceover.compaction IS 'Parquet files beside window files: the records that a certificate counts.';

CREATE TABLE onceover."window" (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  window_start timestamptz NOT NULL,
  window_end timestamptz NOT NULL,
  version bigint NOT NULL DEFAULT 0,
  revision integer NOT NULL DEFAULT 0,
  certificate_id bigint REFERENCES onceover.certificate,
  tries integer NOT NULL DEFAULT 0,
  blocked_at timestamptz,
  blocked_why text,
  token bigint NOT NULL DEFAULT 0,
  claimed_by text,
  claimed_until timestamptz,
  -- NULL plus a number is NULL: an unknown count stays unknown after every addition.
  records bigint DEFAULT 0,
  high1 bigint DEFAULT 0, low1 bigint DEFAULT 0,
  high2 bigint DEFAULT 0, low2 bigint DEFAULT 0,
  expired_at timestamptz,
  overdue_reported_at timestamptz,
  compaction_id bigint REFERENCES onceover.compaction,
  removed_to_landing bigint,
  removed_to_certificate bigint,
  oldest_record timestamptz,
  certified_version bigint,
  is_certified boolean NOT NULL GENERATED ALWAYS AS (
    certificate_id IS NOT NULL AND certified_version IS NOT NULL AND certified_version = version) STORED,
  PRIMARY KEY (pipeline, window_start),
  CHECK (num_nulls(records, high1, low1, high2, low2) IN (0, 5))
);
CREATE INDEX ON onceover."window" (pipeline, window_end);
CREATE INDEX ON onceover."window" (pipeline, window_start)
  WHERE (NOT is_certified OR blocked_at IS NOT NULL OR claimed_until IS NOT NULL) AND expired_at IS NULL;
CREATE INDEX ON onceover."window" (pipeline);
CREATE INDEX ON onceover."window" (pipeline) WHERE expired_at IS NOT NULL;
CREATE INDEX ON onceover."window" (pipeline) WHERE claimed_until IS NOT NULL;
COMMENT ON COLUMN onceover."window".oldest_record IS
  'Smallest Kafka timestamp of the batches that landed in it; NULL: unknown.';
COMMENT ON COLUMN onceover."window".certified_version IS
  'The version that the certificate of certificate_id states. The certificate is valid while the window has it.';
COMMENT ON COLUMN onceover."window".records IS
  'Number of records that the aggregates'' rows count; NULL: unknown, until a repair counts them.';
COMMENT ON COLUMN onceover."window".expired_at IS
  'When its raw expired by the pipeline''s retention: the driver moves the file away, only certificates stay.';
COMMENT ON COLUMN onceover."window".overdue_reported_at IS
  'When a missed deadline of the window was reported; NULL again once it is certified.';
COMMENT ON COLUMN onceover."window".compaction_id IS
  'The Parquet file that replaced the text by the pipeline''s retention; such a window has not expired.';
COMMENT ON COLUMN onceover."window".removed_to_landing IS
  'The text of landings up to this one is no longer in the window file.';
COMMENT ON COLUMN onceover."window".removed_to_certificate IS
  'The text of certificates up to this one is no longer in the window file.';

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
COMMENT ON TABLE onceover.revision IS 'Aggregates that a repair replaced; revision_row holds their rows.';

CREATE TABLE onceover.revision_row (
  pipeline text NOT NULL,
  window_start timestamptz NOT NULL,
  revision integer NOT NULL,
  aggregates jsonb NOT NULL,
  FOREIGN KEY (pipeline, window_start, revision) REFERENCES onceover.revision
);
CREATE INDEX ON onceover.revision_row (pipeline, window_start, revision);

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
  'The content that counts where raw holds several for one ID; the last decision about an ID holds.';

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

CREATE TABLE onceover.expiry (
  expiry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  window_start timestamptz,
  quarantine_day date,
  version bigint,
  last_landing bigint NOT NULL,
  bytes bigint NOT NULL,
  records bigint NOT NULL,
  landed_at timestamptz NOT NULL,
  state text NOT NULL DEFAULT 'wanted' CHECK (state IN ('wanted', 'moved', 'deleted', 'dropped')),
  reason text,
  who text NOT NULL,
  why text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  moved_at timestamptz,
  finished_at timestamptz,
  CHECK ((window_start IS NULL) <> (quarantine_day IS NULL)),
  CHECK ((window_start IS NULL) = (version IS NULL))
);
CREATE INDEX ON onceover.expiry (pipeline, expiry_id) WHERE state = 'wanted';
CREATE INDEX ON onceover.expiry (pipeline, moved_at) WHERE state = 'moved';
CREATE UNIQUE INDEX ON onceover.expiry (pipeline, quarantine_day) WHERE state <> 'dropped';
COMMENT ON TABLE onceover.expiry IS 'Raw files that expire by retention: a window''s, or those of a day of quarantine.';

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
  'The IDs of each release: they have the contract version of that batch, and no other landing counts them.';
"""


def upgrade() -> None:
    op.execute(TABLES)
