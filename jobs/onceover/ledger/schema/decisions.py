"""What is read again, what expires, and what persons decided."""

from __future__ import annotations

from typing import Final

TABLES: Final = """
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

CREATE TABLE onceover.reread (
  reread_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  window_start timestamptz NOT NULL,
  contract_version integer NOT NULL,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  request_id bigint NOT NULL REFERENCES onceover.repair_request,
  state text NOT NULL DEFAULT 'wanted' CHECK (state IN ('wanted', 'appended', 'refused')),
  reason text,
  created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  CHECK (start_offset < end_offset)
);
CREATE INDEX ON onceover.reread (pipeline, reread_id) WHERE state = 'wanted';
COMMENT ON TABLE onceover.reread IS
  'Landed offset ranges that the driver is to read again from Kafka for one window file that has lost their lines.';

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
  kept_at timestamptz,
  CHECK ((window_start IS NULL) <> (quarantine_day IS NULL)),
  CHECK ((window_start IS NULL) = (version IS NULL))
);
CREATE INDEX ON onceover.expiry (pipeline, expiry_id) WHERE state = 'wanted';
CREATE INDEX ON onceover.expiry (pipeline, moved_at) WHERE state = 'moved';
CREATE UNIQUE INDEX ON onceover.expiry (pipeline, quarantine_day) WHERE state <> 'dropped';
COMMENT ON TABLE onceover.expiry IS 'Raw files that expire by retention: a window''s, or those of a day of quarantine.';
COMMENT ON COLUMN onceover.expiry.kept_at IS
  'When a file that had already been moved away was put back, because it held more than had expired.';

CREATE TABLE onceover.taking (
  taking_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline ON DELETE CASCADE,
  first_window timestamptz NOT NULL,
  windows integer NOT NULL,
  who text NOT NULL,
  ticket text,
  why text,
  taken_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON onceover.taking (pipeline, taken_at);
COMMENT ON TABLE onceover.taking IS 'What persons took, and what they released, for ever.';
COMMENT ON COLUMN onceover.taking.ticket IS 'NULL: these windows were released.';
COMMENT ON COLUMN onceover.taking.why IS 'Why they were taken over from others; NULL: no other person had them.';

CREATE TABLE onceover.taken_window (
  pipeline text NOT NULL REFERENCES onceover.pipeline ON DELETE CASCADE,
  window_start timestamptz NOT NULL,
  taking_id bigint NOT NULL REFERENCES onceover.taking ON DELETE CASCADE,
  last_certificate bigint NOT NULL,
  PRIMARY KEY (pipeline, window_start)
);
CREATE INDEX ON onceover.taken_window (taking_id);
COMMENT ON TABLE onceover.taken_window IS 'Who works on which windows: taken for a ticket, until each is certified.';
COMMENT ON COLUMN onceover.taken_window.last_certificate IS
  'The window''s last certificate when it was taken, 0 without one: a later one ends the taking, and this row is '
  'ignored.';
"""
