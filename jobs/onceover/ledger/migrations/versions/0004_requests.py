"""Repair requests that are listed, cancelled, and continued after a kill."""

from __future__ import annotations

from alembic import op

revision = "1.4"
down_revision = "1.3"

REQUESTS = """
ALTER TABLE onceover.repair_request
  ADD COLUMN range_start timestamptz, ADD COLUMN range_end timestamptz,
  ADD COLUMN forced boolean NOT NULL DEFAULT false,
  ADD COLUMN cancelled_at timestamptz, ADD COLUMN cancelled_by text, ADD COLUMN cancelled_why text;
COMMENT ON COLUMN onceover.repair_request.range_start IS
  'The first window of the range that a person requested; NULL: the request of a schedule.';
COMMENT ON COLUMN onceover.repair_request.forced IS 'Whether right windows of the range are rebuilt too.';

ALTER TABLE onceover.repair DROP CONSTRAINT repair_state_check;
ALTER TABLE onceover.repair ADD CONSTRAINT repair_state_check CHECK (state IN
  ('planned', 'claimed', 'published', 'confirmed', 'revoked', 'failed', 'unneeded', 'left', 'restored', 'cancelled'));
CREATE INDEX ON onceover.repair (pipeline, request_id) WHERE state IN ('planned', 'claimed', 'published');
"""


def upgrade() -> None:
    op.execute(REQUESTS)
