"""Windows and their certificates: what proves a window right, and what was found wrong with it."""

from __future__ import annotations

from typing import Final

from onceover.ledger.schema.digest import DIGEST

TABLES: Final = f"""
CREATE TABLE onceover.repair_request (
  request_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  who text NOT NULL,
  why text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  dag_id text,
  run_id text,
  range_start timestamptz,
  range_end timestamptz,
  forced boolean NOT NULL DEFAULT false,
  cancelled_at timestamptz,
  cancelled_by text,
  cancelled_why text
);
CREATE INDEX ON onceover.repair_request (dag_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX ON onceover.repair_request (pipeline, created_at DESC);
COMMENT ON TABLE onceover.repair_request IS 'Requests for repairs, by a schedule or a person.';
COMMENT ON COLUMN onceover.repair_request.run_id IS
  'The run of the DAG dag_id that made the request; NULL: a person''s command.';
COMMENT ON COLUMN onceover.repair_request.range_start IS
  'The first window of the range that a person requested; NULL: the request of a schedule.';
COMMENT ON COLUMN onceover.repair_request.forced IS 'Whether right windows of the range are rebuilt too.';

CREATE TABLE onceover.repair (
  repair_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  request_id bigint NOT NULL REFERENCES onceover.repair_request,
  pipeline text NOT NULL,
  window_start timestamptz NOT NULL,
  state text NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'claimed', 'published', 'confirmed', 'revoked',
    'failed', 'unneeded', 'left', 'restored', 'cancelled')),
  reason text,
  failures text[] NOT NULL DEFAULT '{{}}',
  token uuid,
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
  replaced_revision integer GENERATED ALWAYS AS (
    CASE WHEN (before ->> 'revision') <> (after ->> 'revision') THEN (before ->> 'revision')::integer END) STORED,
  announced_at timestamptz,
  announced_in text,
  UNIQUE (request_id, window_start)
);
CREATE INDEX ON onceover.repair (pipeline, window_start);
CREATE INDEX ON onceover.repair (pipeline, overcount) WHERE overcount <> 0 AND state <> 'restored';
CREATE INDEX ON onceover.repair (pipeline, repair_id) WHERE announced_at IS NULL AND replaced_revision IS NOT NULL;
CREATE INDEX ON onceover.repair (pipeline, request_id) WHERE state IN ('planned', 'claimed', 'published');
COMMENT ON TABLE onceover.repair IS 'What each request did to each of its windows.';
COMMENT ON COLUMN onceover.repair.failures IS 'Codes of the causes of a failed try; the reason says them in words.';
COMMENT ON COLUMN onceover.repair.overcount IS
  'Records counted too many before the repair, too few if negative; NULL: nothing published, or unknown.';
COMMENT ON COLUMN onceover.repair.replaced_revision IS
  'The revision whose rows it replaced, which revision_row keeps; NULL: it replaced none.';
COMMENT ON COLUMN onceover.repair.announced_at IS
  'When Airflow had an event of the pipeline''s asset about the rows that it published; NULL: not yet, or no new rows.';
COMMENT ON COLUMN onceover.repair.announced_in IS 'The run of Airflow that last offered it as an event.';

CREATE TABLE onceover.certificate (
  certificate_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL,
  window_start timestamptz NOT NULL,
  version bigint NOT NULL,
  basis text NOT NULL CHECK (basis IN ('ledger', 'raw')),
  contract_version integer NOT NULL,
  code_version text NOT NULL,
  last_landing bigint NOT NULL,
  landings integer NOT NULL,
  frozen_length bigint NOT NULL,{DIGEST},
  aggregate_rows bigint,
  aggregate_hash text,
  repair_id bigint REFERENCES onceover.repair,
  who text NOT NULL,
  why text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz,
  revoked_why text,
  by_value bigint,
  losses int8multirange NOT NULL DEFAULT '{{}}',
  extras jsonb NOT NULL DEFAULT '[]',
  replaced_certificate bigint REFERENCES onceover.certificate,
  announced_at timestamptz,
  announced_in text,
  verdict text NOT NULL GENERATED ALWAYS AS (
    CASE WHEN losses = '{{}}' THEN 'exact' ELSE 'exact but for accepted losses' END) STORED
);
CREATE INDEX ON onceover.certificate (pipeline, window_start);
CREATE INDEX ON onceover.certificate (certificate_id) INCLUDE (version, basis, verdict);
CREATE INDEX ON onceover.certificate (pipeline) WHERE extras <> '[]';
CREATE INDEX ON onceover.certificate (pipeline, certificate_id)
  WHERE announced_at IS NULL AND replaced_certificate IS NOT NULL;
COMMENT ON TABLE onceover.certificate IS 'That a window''s rows were right, by what, and by whose order.';
COMMENT ON COLUMN onceover.certificate.last_landing IS
  'It rests on the window''s landings up to this one, 0: on none. A window''s landings are numbered as they landed.';
COMMENT ON COLUMN onceover.certificate.landings IS 'The number of these landings then; rollups since have fewer.';
COMMENT ON COLUMN onceover.certificate.repair_id IS 'The repair whose reading of raw it rests on; NULL: on the ledger.';
COMMENT ON COLUMN onceover.certificate.by_value IS
  'Records whose VALUE the repair evaluated again; the others count by the columns in their lines. NULL: raw not read.';
COMMENT ON COLUMN onceover.certificate.losses IS 'The accepted losses that it states: ranges of loss_id.';
COMMENT ON COLUMN onceover.certificate.extras IS
  'Records that it counts though they had landed nowhere: [generation, kafka_partition, start, end, leader epoch].';
COMMENT ON COLUMN onceover.certificate.replaced_certificate IS
  'The window''s certificate before it, if late records were counted since, and no repair replaced rows for it.';
COMMENT ON COLUMN onceover.certificate.announced_at IS
  'When Airflow had an event of the pipeline''s asset about these late records; NULL: not yet, or there were none.';
COMMENT ON COLUMN onceover.certificate.announced_in IS 'The run of Airflow that last offered it as an event.';

CREATE TABLE onceover."window" (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  window_start timestamptz NOT NULL,
  window_end timestamptz NOT NULL,
  day date NOT NULL,
  version bigint NOT NULL DEFAULT 0,
  revision integer NOT NULL DEFAULT 0,
  certificate_id bigint REFERENCES onceover.certificate,
  tries integer NOT NULL DEFAULT 0,
  blocked_at timestamptz,
  blocked_why text,
  token uuid,
  claimed_by text,
  claimed_until timestamptz,
  -- NULL plus a number is NULL: an unknown count stays unknown after every addition.
  records bigint DEFAULT 0,
  high1 bigint DEFAULT 0, low1 bigint DEFAULT 0,
  high2 bigint DEFAULT 0, low2 bigint DEFAULT 0,
  expired_at timestamptz,
  expired_why text,
  overdue_reported_at timestamptz,
  compacted_bytes bigint,
  compacted_records bigint,
  compacted_high1 bigint, compacted_low1 bigint,
  compacted_high2 bigint, compacted_low2 bigint,
  text_replaced boolean NOT NULL DEFAULT false,
  removed_to_landing bigint,
  removed_to_certificate bigint,
  oldest_record timestamptz,
  certified_version bigint,
  certified_basis text,
  is_certified boolean NOT NULL GENERATED ALWAYS AS (
    certificate_id IS NOT NULL AND certified_version IS NOT NULL AND certified_version = version) STORED,
  by_value boolean NOT NULL DEFAULT false,
  kept_rows integer,
  kept_hash text,
  taking_id bigint REFERENCES onceover.action,
  PRIMARY KEY (pipeline, window_start),
  CHECK (num_nulls(records, high1, low1, high2, low2) IN (0, 5)),
  CHECK (num_nulls(compacted_bytes, compacted_records, compacted_high1, compacted_low1, compacted_high2,
    compacted_low2) IN (0, 6)),
  CHECK (compacted_bytes IS NOT NULL OR NOT text_replaced)
);
CREATE INDEX ON onceover."window" (pipeline, window_end);
CREATE INDEX ON onceover."window" (pipeline, window_start)
  WHERE (NOT is_certified OR blocked_at IS NOT NULL OR claimed_until IS NOT NULL) AND expired_at IS NULL;
CREATE INDEX ON onceover."window" (pipeline);
CREATE INDEX ON onceover."window" (pipeline) WHERE expired_at IS NOT NULL;
CREATE INDEX ON onceover."window" (pipeline) WHERE claimed_until IS NOT NULL;
CREATE INDEX ON onceover."window" (pipeline) WHERE taking_id IS NOT NULL;
COMMENT ON TABLE onceover."window" IS 'Windows: whether each is certified, claimed, blocked or expired now.';
COMMENT ON COLUMN onceover."window".day IS
  'The date on which it starts, in UTC or, if its windows have a zone, there.';
COMMENT ON COLUMN onceover."window".records IS
  'Number of records that the aggregates'' rows count; NULL: unknown, until a repair counts them.';
COMMENT ON COLUMN onceover."window".expired_at IS
  'When its raw expired by the pipeline''s retention: the driver moves the file away, only certificates stay.';
COMMENT ON COLUMN onceover."window".expired_why IS
  'Why the window counts as expired without a retention of this ledger; NULL: this ledger''s retention expired it.';
COMMENT ON COLUMN onceover."window".overdue_reported_at IS
  'When a missed deadline of the window was reported; NULL again once it is certified.';
COMMENT ON COLUMN onceover."window".compacted_bytes IS
  'Length of the compacted file beside the text, which is named for the digest of its records; NULL: there is none.';
COMMENT ON COLUMN onceover."window".text_replaced IS
  'Whether the compacted file replaced the text by the pipeline''s retention; such a window has not expired.';
COMMENT ON COLUMN onceover."window".removed_to_landing IS
  'The text of landings up to this one is no longer in the window file.';
COMMENT ON COLUMN onceover."window".removed_to_certificate IS
  'The text of certificates up to this one is no longer in the window file.';
COMMENT ON COLUMN onceover."window".oldest_record IS
  'Smallest Kafka timestamp of the batches that landed in it; NULL: unknown.';
COMMENT ON COLUMN onceover."window".certified_version IS
  'The version that the certificate of certificate_id states. The certificate is valid while the window has it.';
COMMENT ON COLUMN onceover."window".certified_basis IS
  'What the certificate of certificate_id rests on, ''ledger'' or ''raw'', or ''loss'' if it is exact but for an '
  'accepted loss.';
COMMENT ON COLUMN onceover."window".by_value IS
  'Whether each repair evaluates the values of all its records, since a person doubts the columns in its lines.';
COMMENT ON COLUMN onceover."window".kept_hash IS
  'Of rows that were there without raw when the ledger was rebuilt: no repair replaces them by rows with another '
  'fingerprint (kept_rows, kept_hash). NULL: no such rows, or proved since.';
COMMENT ON COLUMN onceover."window".taking_id IS
  'The action by which a person took it, until its next certificate; NULL: no person works on it.';

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
COMMENT ON TABLE onceover.finding IS 'What detection and repairs found wrong, until it is resolved.';

-- json, not jsonb, which knows no -0: kept rows come back as they were. With a publication FOR ALL TABLES, PostgreSQL
-- takes no UPDATE or DELETE of a table without a primary key or an identity of rows.
CREATE TABLE onceover.revision_row (
  pipeline text NOT NULL,
  window_start timestamptz NOT NULL,
  revision integer NOT NULL,
  aggregates json NOT NULL,
  FOREIGN KEY (pipeline, window_start) REFERENCES onceover."window"
);
CREATE INDEX ON onceover.revision_row (pipeline, window_start, revision);
ALTER TABLE onceover.revision_row REPLICA IDENTITY FULL;
COMMENT ON TABLE onceover.revision_row IS 'Rows of aggregates that repairs replaced, by which they can be restored.';
"""
