"""Who works on which windows: taken by a person for a ticket, until each is certified."""

from __future__ import annotations

from alembic import op

revision = "1.8"
down_revision = "1.7"

TAKINGS = """
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
COMMENT ON COLUMN onceover.taken_window.last_certificate IS
  'The window''s last certificate when it was taken, 0 without one: a later one ends the taking, and this row is '
  'ignored.';
"""


def upgrade() -> None:
    op.execute(TAKINGS)
