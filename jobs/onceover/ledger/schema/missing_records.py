"""Records that are missing: what of them is read again, accepted as lost, or expired."""

from __future__ import annotations

from typing import Final

TABLES: Final = """
CREATE TABLE onceover.read_again (
  read_again_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  window_start timestamptz,
  contract_version integer,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  request_id bigint NOT NULL REFERENCES onceover.repair_request,
  batch_id bigint REFERENCES onceover.batch,
  state text NOT NULL DEFAULT 'wanted' CHECK (state IN ('wanted', 'landed', 'appended', 'refused')),
  reason text,
  finished_at timestamptz,
  CHECK (start_offset < end_offset),
  CHECK ((window_start IS NULL) = (contract_version IS NULL)),
  CHECK (state <> CASE WHEN window_start IS NULL THEN 'appended' ELSE 'landed' END)
);
CREATE INDEX ON onceover.read_again (batch_id);
CREATE INDEX ON onceover.read_again (request_id);
CREATE INDEX ON onceover.read_again (pipeline, window_start) WHERE window_start IS NOT NULL;
CREATE INDEX ON onceover.read_again (pipeline, read_again_id) WHERE state = 'wanted';
COMMENT ON TABLE onceover.read_again IS
  'Offset ranges that the driver is to read again from Kafka: holes, which then land, and what raw of one window lost.';
COMMENT ON COLUMN onceover.read_again.window_start IS
  'The window whose file alone gets the lines again, by contract_version; both NULL for a hole.';

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
  kind text NOT NULL DEFAULT 'lost' CHECK (kind IN ('lost', 'unreadable')),
  relanded_at timestamptz,
  CHECK (start_offset < end_offset),
  CHECK (first_window < end_window)
);
CREATE INDEX ON onceover.accepted_loss (pipeline);
COMMENT ON TABLE onceover.accepted_loss IS 'Offsets that a person accepted as never read; certificates state them.';
COMMENT ON COLUMN onceover.accepted_loss.relanded_at IS
  'When records of the range landed after all: what of it stayed lost is a row of its own.';

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
"""
