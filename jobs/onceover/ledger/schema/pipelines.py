"""The ledger itself, pipelines and their contracts, what was done to each, and how far each has read its topic."""

from __future__ import annotations

from typing import Final

TABLES: Final = """
CREATE SCHEMA IF NOT EXISTS aggregates;
COMMENT ON SCHEMA aggregates IS 'Aggregates, which readers query: one table a pipeline.';
CREATE SCHEMA IF NOT EXISTS staging;
COMMENT ON SCHEMA staging IS 'Rows on their way into aggregates; nothing here outlives its batch or repair.';

CREATE TABLE onceover.ledger (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  ledger_id uuid NOT NULL DEFAULT gen_random_uuid(),
  schema_version text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE onceover.ledger IS
  'This ledger''s identity, which the marker of each raw root that it owns repeats, and the version of its schema.';

CREATE TABLE onceover.action (
  action_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('take windows', 'release windows', 'set offsets', 'take over raw', 'compact raw',
    'audit window', 'audit log', 'audit restatement')),
  who text NOT NULL,
  why text,
  detail jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON onceover.action (pipeline, created_at DESC);
COMMENT ON TABLE onceover.action IS 'Who did what to a pipeline, when and why, for ever.';
COMMENT ON COLUMN onceover.action.why IS 'NULL: the action needed no reason.';
COMMENT ON COLUMN onceover.action.detail IS
  'Facts of its kind: windows and ticket; offsets, or markers of the raw root, before and after; an audit''s result.';

CREATE TABLE onceover.pipeline (
  name text PRIMARY KEY,
  contract_version integer NOT NULL,
  watermark timestamptz,
  every_window_closed boolean NOT NULL DEFAULT false,
  log_retention interval,
  batches_landed bigint NOT NULL DEFAULT 0,
  last_batch bigint,
  held_since timestamptz,
  raw_store text NOT NULL DEFAULT 'hdfs'
);
COMMENT ON TABLE onceover.pipeline IS 'Pipelines: the contract in force, the watermark, and where raw is kept.';
COMMENT ON COLUMN onceover.pipeline.last_batch IS 'The submitted batch that landed last: none that read again.';
COMMENT ON COLUMN onceover.pipeline.log_retention IS
  'How long the topic keeps records, by retention.ms or as retention.bytes lets expect; NULL: for ever, or unknown.';
COMMENT ON COLUMN onceover.pipeline.held_since IS
  'Since when the watermark has not moved although a Kafka partition is beyond it; NULL: nothing holds it.';
COMMENT ON COLUMN onceover.pipeline.raw_store IS 'The [storage] raw_store under which the first batch landed.';

CREATE TABLE onceover.contract (
  pipeline text NOT NULL REFERENCES onceover.pipeline DEFERRABLE INITIALLY DEFERRED,
  version integer NOT NULL,
  definition jsonb NOT NULL,
  columns jsonb NOT NULL,
  cutovers jsonb NOT NULL,
  poison jsonb NOT NULL DEFAULT '[]',
  created_at timestamptz NOT NULL DEFAULT now(),
  who text,
  why text,
  PRIMARY KEY (pipeline, version)
);
COMMENT ON TABLE onceover.contract IS 'Every version of a pipeline''s contract: what its records mean, for ever.';
COMMENT ON COLUMN onceover.contract.cutovers IS
  'The first offset of this version or a later one: [generation, kafka_partition, offset]; a Kafka partition that is '
  'not listed has it from its start.';
COMMENT ON COLUMN onceover.contract.poison IS
  'Records that its SQL is not evaluated for: Spark''s process died of them, or did not end. The error ended it.';
COMMENT ON COLUMN onceover.contract.who IS 'Author of the cutover to this version; NULL for the first version.';

CREATE TABLE onceover.restatement (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  number integer NOT NULL,
  range_start timestamptz NOT NULL,
  range_end timestamptz NOT NULL,
  contract_version integer NOT NULL,
  who text NOT NULL,
  why text NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (pipeline, number)
);
COMMENT ON TABLE onceover.restatement IS
  'Ranges of windows whose records count under that version of the contract, or a later one by their IDs.';

CREATE TABLE onceover.kafka_partition (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  topic_id text NOT NULL,
  origin bigint NOT NULL,
  frontier bigint NOT NULL,
  reach bigint NOT NULL,
  end_offset bigint NOT NULL,
  high_watermark bigint,
  hidden_since timestamptz,
  max_event_time timestamptz,
  caught_up_since timestamptz,
  read_until timestamptz,
  truncated_from bigint,
  compared_epoch integer,
  cut_from bigint,
  past_to bigint,
  records_landed bigint NOT NULL DEFAULT 0,
  records_quarantined bigint NOT NULL DEFAULT 0,
  unreadable int8range,
  unreadable_why text,
  unreadable_at timestamptz,
  suspect int8range,
  suspect_why text,
  suspect_at timestamptz,
  unknown_schema int8range,
  unknown_schema_why text,
  unknown_schema_at timestamptz,
  PRIMARY KEY (pipeline, generation, kafka_partition),
  CHECK (NOT isempty(unreadable) AND NOT isempty(suspect) AND NOT isempty(unknown_schema))
);
COMMENT ON TABLE onceover.kafka_partition IS
  'Kafka partitions: where reading began, up to where all has landed, and how the log compares with what landed.';
COMMENT ON COLUMN onceover.kafka_partition.high_watermark IS
  'Where the log ended; beyond end_offset, the last stable offset, an open transaction hides records. NULL: unknown.';
COMMENT ON COLUMN onceover.kafka_partition.hidden_since IS
  'When ingest first saw that a transaction was open at end_offset; NULL: none is.';
COMMENT ON COLUMN onceover.kafka_partition.caught_up_since IS
  'Since when nothing with an event time arrived, as of the last moment at which the log was read to its end.';
COMMENT ON COLUMN onceover.kafka_partition.read_until IS
  'No unread record is older: when all was read, or the oldest Kafka timestamp of the last batch. NULL: unknown.';
COMMENT ON COLUMN onceover.kafka_partition.truncated_from IS
  'The stored offset when the log was found to end before it; NULL once the log reaches that offset again.';
COMMENT ON COLUMN onceover.kafka_partition.compared_epoch IS
  'The log''s leader epoch when landed ranges were last compared with it; NULL: not since the ledger was rebuilt.';
COMMENT ON COLUMN onceover.kafka_partition.cut_from IS
  'Where the log was found cut last: it is to be read from there on while the reach is no further.';
COMMENT ON COLUMN onceover.kafka_partition.past_to IS
  'The largest reach before the log was cut: up to there a batch may read offsets that landed before.';
COMMENT ON COLUMN onceover.kafka_partition.records_landed IS
  'Records of all landed batches, quarantine included; a record that landed twice counts twice.';
COMMENT ON COLUMN onceover.kafka_partition.records_quarantined IS 'Those of records_landed that are in quarantine.';
COMMENT ON COLUMN onceover.kafka_partition.unreadable IS
  'Offsets that Kafka''s log holds and no reader gets: ingest stops before them, and reads the other Kafka partitions.';
COMMENT ON COLUMN onceover.kafka_partition.unreadable_at IS
  'When a read of them failed last: ingest tries again from time to time.';
COMMENT ON COLUMN onceover.kafka_partition.suspect IS
  'Offsets of which a batch failed by a record: ingest stops before them while it searches for the record.';
COMMENT ON COLUMN onceover.kafka_partition.unknown_schema IS
  'An offset whose value a schema wrote that the registry does not give: ingest stops before it, and asks again.';

CREATE TABLE onceover.writer_schema (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  schema text NOT NULL,
  met_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  contract_version integer NOT NULL,
  is_read boolean NOT NULL,
  difference text NOT NULL,
  PRIMARY KEY (pipeline, schema)
);
COMMENT ON TABLE onceover.writer_schema IS
  'The schemas of a registry that values were written with, and how each differs from the contract''s reader schema.';
COMMENT ON COLUMN onceover.writer_schema.is_read IS 'False: its values go to quarantine, for what the difference says.';

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
"""
