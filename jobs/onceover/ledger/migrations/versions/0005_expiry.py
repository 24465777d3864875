"""Raw that is older than its pipeline keeps it: what was to go, who said so, and what became of it."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"

TABLES = """
ALTER TABLE onceover."window" ADD expired_at timestamptz;
COMMENT ON COLUMN onceover."window".expired_at IS
  'Since when its raw is gone, or to be gone, by the pipeline''s retention: its certificate is all there is.';

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
CREATE INDEX ON onceover.landing (pipeline, quarantine_day) WHERE quarantine_day IS NOT NULL;
COMMENT ON TABLE onceover.expiry IS 'Raw files that go by retention: a window''s, or those of a day of quarantine.';
"""


def upgrade() -> None:
    op.execute(TABLES)
