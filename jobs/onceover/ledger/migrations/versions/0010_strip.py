"""A strip of a year reads windows alone: what their certificates rest on is in their own rows."""

from __future__ import annotations

from alembic import op

revision = "1.10"
down_revision = "1.9"

STRIP = """
ALTER TABLE onceover."window" ADD COLUMN certified_basis text;
COMMENT ON COLUMN onceover."window".certified_basis IS
  'What the certificate of certificate_id rests on, ''ledger'' or ''raw'', or ''loss'' if it is exact but for an '
  'accepted loss.';
UPDATE onceover."window" w SET certified_basis = CASE WHEN c.verdict <> 'exact' THEN 'loss' ELSE c.basis END
FROM onceover.certificate c WHERE c.certificate_id = w.certificate_id;
"""


def upgrade() -> None:
    op.execute(STRIP)
