"""Parquet files beside window files: what was compacted, and where it stands in for text that was let go."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"

TABLES = """
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

ALTER TABLE onceover."window"
  ADD compaction_id bigint REFERENCES onceover.compaction,
  ADD last_let_go bigint,
  ADD let_go_certificate bigint;
COMMENT ON COLUMN onceover."window".compaction_id IS
  'The Parquet file that stands in for text that was let go by the pipeline''s retention: then nothing has expired.';
COMMENT ON COLUMN onceover."window".last_let_go IS 'The last landing whose text is no longer in the window file.';
COMMENT ON COLUMN onceover."window".let_go_certificate IS 'The last certificate whose text is no longer there.';
"""


def upgrade() -> None:
    op.execute(TABLES)
