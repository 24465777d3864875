"""What the page reads and Airflow hears of: which run a request is of, and which published windows were announced."""

from __future__ import annotations

from alembic import op

revision = "1.3"
down_revision = "1.2"

RUNS = """
ALTER TABLE onceover.repair_request ADD COLUMN dag_id text, ADD COLUMN run_id text;
CREATE INDEX ON onceover.repair_request (dag_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX ON onceover.repair_request (pipeline, created_at DESC);
COMMENT ON COLUMN onceover.repair_request.run_id IS
  'The run of the DAG dag_id that made the request; NULL: a person''s command.';
"""

STRIP = """
CREATE INDEX ON onceover.certificate (certificate_id) INCLUDE (version, basis, verdict);
DROP INDEX onceover.certificate_certificate_id_version_idx;
"""

# What was published before this version was no asset's event: rows that are there count as announced.
ANNOUNCED = """
ALTER TABLE onceover.repair ADD COLUMN announced_at timestamptz DEFAULT now(), ADD COLUMN announced_in text;
ALTER TABLE onceover.repair ALTER COLUMN announced_at DROP DEFAULT;
CREATE INDEX ON onceover.repair (pipeline, repair_id) WHERE announced_at IS NULL
  AND (before ->> 'revision') <> (after ->> 'revision');
COMMENT ON COLUMN onceover.repair.announced_at IS
  'When Airflow had an event of the pipeline''s asset about the rows that it published; NULL: not yet, or no new rows.';
COMMENT ON COLUMN onceover.repair.announced_in IS 'The run of Airflow that last offered it as an event.';
"""


def upgrade() -> None:
    for part in (RUNS, STRIP, ANNOUNCED):
        op.execute(part)
