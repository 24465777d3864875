"""Drivers and their batches: what each read, and what landed in which window's file."""

from __future__ import annotations

from typing import Final

from onceover.ledger.schema.digest import DIGEST

TABLES: Final = f"""
CREATE TABLE onceover.driver (
  holder uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  epoch bigint NOT NULL,
  owner text NOT NULL,
  heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  progress_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  superseded_at timestamptz,
  code_version text,
  spark_version text,
  zone_data text,
  UNIQUE (pipeline, epoch)
);
CREATE UNIQUE INDEX ON onceover.driver (pipeline) WHERE superseded_at IS NULL;
COMMENT ON TABLE onceover.driver IS
  'Every driver of each pipeline: one lives at a time, the newest, while it renews its lease. A marker that names '
  'another was written by a driver that this ledger does not know.';
COMMENT ON COLUMN onceover.driver.holder IS
  'Fences the epoch: a ledger restored from a backup gives the same epoch again, but never the same holder.';
COMMENT ON COLUMN onceover.driver.progress_at IS
  'When a turn of the loop last ended well; the heartbeat beats in a thread of its own, whatever hangs or fails.';
COMMENT ON COLUMN onceover.driver.superseded_at IS 'When the next driver took over; NULL: this one is the newest.';
COMMENT ON COLUMN onceover.driver.spark_version IS
  'Of the Spark that evaluated this driver''s records; NULL if the driver evaluated none.';
COMMENT ON COLUMN onceover.driver.zone_data IS 'The release of Java''s time zone data, such as 2025b.';

CREATE TABLE onceover.batch (
  batch_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  epoch bigint NOT NULL,
  contract_version integer NOT NULL,
  state text NOT NULL DEFAULT 'begun' CHECK (state IN ('begun', 'landed', 'superseded')),
  begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  landed_at timestamptz,
  committed_at timestamptz,
  scheduling_delay_ms bigint CHECK (scheduling_delay_ms >= 0),
  batches integer NOT NULL DEFAULT 1,
  rolled_up_at timestamptz,
  sink text NOT NULL DEFAULT 'append',
  who text,
  why text
);
CREATE INDEX ON onceover.batch (pipeline, batch_id) WHERE state = 'begun';
CREATE INDEX ON onceover.batch (pipeline, batch_id DESC);
CREATE INDEX ON onceover.batch (pipeline) WHERE state = 'superseded';
CREATE INDEX ON onceover.batch (pipeline, batch_id)
  WHERE state = 'landed' AND scheduling_delay_ms IS NOT NULL AND rolled_up_at IS NULL;
CREATE INDEX ON onceover.batch (pipeline) WHERE who IS NOT NULL;
COMMENT ON TABLE onceover.batch IS 'Batches: begun before they read, landed in one transaction, or superseded.';
COMMENT ON COLUMN onceover.batch.batches IS
  'The number of batches that a rollup joined to it: its rows are as if it had read and landed all of them.';
COMMENT ON COLUMN onceover.batch.rolled_up_at IS
  'When it was rolled up, or found to have none to be joined with; NULL: not yet, as Kafka may still hold its offsets.';
COMMENT ON COLUMN onceover.batch.scheduling_delay_ms IS
  'From the submission of the batch to its start; NULL: not submitted, as it reads again, releases, or was rebuilt.';
COMMENT ON COLUMN onceover.batch.sink IS
  'How the batch added its rows: append, before its landings counted; transactional, in the same transaction.';
COMMENT ON COLUMN onceover.batch.who IS
  'Who released its records out of quarantine: such a batch read no offsets, and landed those of onceover.released. '
  'NULL: it is no release.';

CREATE TABLE onceover.batch_range (
  batch_id bigint NOT NULL REFERENCES onceover.batch,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  max_event_time timestamptz,{DIGEST},
  oldest_record timestamptz,
  leader_epochs jsonb NOT NULL DEFAULT '[]',
  past_from bigint CHECK (past_from BETWEEN start_offset AND end_offset),
  PRIMARY KEY (batch_id, generation, kafka_partition, start_offset),
  CHECK (start_offset < end_offset)
);
CREATE INDEX ON onceover.batch_range (generation, kafka_partition, end_offset, start_offset);
CREATE INDEX ON onceover.batch_range (generation, kafka_partition, start_offset, end_offset);
COMMENT ON TABLE onceover.batch_range IS 'The offset ranges that each batch reads, with the digest of what it read.';
COMMENT ON COLUMN onceover.batch_range.oldest_record IS
  'Smallest Kafka timestamp read: with the topic''s retention, how long the log still holds the range.';
COMMENT ON COLUMN onceover.batch_range.leader_epochs IS
  'Kafka leader epochs of the records read: [epoch, first offset] by offset; epoch -1: records without; []: unknown.';
COMMENT ON COLUMN onceover.batch_range.past_from IS
  'From this offset on the log held other records, or none, when it was found cut: they are to be read; NULL: none.';

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
COMMENT ON TABLE onceover.landing IS 'Appends that count: the bytes of a file, and the digest of their records.';

CREATE TABLE onceover.landing_part (
  landing_id bigint NOT NULL REFERENCES onceover.landing,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,{DIGEST},
  PRIMARY KEY (landing_id, generation, kafka_partition)
);
COMMENT ON TABLE onceover.landing_part IS 'The digest of each landing by Kafka partition.';

CREATE TABLE onceover.released (
  batch_id bigint NOT NULL REFERENCES onceover.batch,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  PRIMARY KEY (batch_id, generation, kafka_partition, start_offset),
  CHECK (start_offset < end_offset)
);
CREATE INDEX ON onceover.released (generation, kafka_partition, start_offset);
COMMENT ON TABLE onceover.released IS 'The offsets of the records that each release landed out of quarantine.';
"""
