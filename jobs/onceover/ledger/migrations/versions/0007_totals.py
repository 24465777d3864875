"""What a scrape of the metrics must not add up from a year of batches: how much has landed, kept as it lands; failed
attempts; and by how much repaired aggregates were wrong."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"

TABLES = """
ALTER TABLE onceover.kafka_partition
  ADD records_landed bigint NOT NULL DEFAULT 0,
  ADD records_quarantined bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN onceover.kafka_partition.records_landed IS
  'By all landed batches, quarantine included; one that landed twice counts twice.';
COMMENT ON COLUMN onceover.kafka_partition.records_quarantined IS 'Those of them that are in quarantine.';
ALTER TABLE onceover.pipeline ADD batches_landed bigint NOT NULL DEFAULT 0;
CREATE INDEX ON onceover.batch (pipeline) WHERE state = 'superseded';

ALTER TABLE onceover.repair ADD overcount bigint
  GENERATED ALWAYS AS ((before #>> '{control,records}')::bigint - (after #>> '{control,records}')::bigint) STORED;
COMMENT ON COLUMN onceover.repair.overcount IS
  'Records that the aggregates counted too many before it, too few if negative; NULL: nothing published, or unknown.';
CREATE INDEX ON onceover.repair (pipeline, overcount) WHERE overcount <> 0 AND state <> 'restored';
"""

TOTALS_SO_FAR = """
UPDATE onceover.kafka_partition k SET records_landed = s.records FROM (
  SELECT b.pipeline, r.generation, r.kafka_partition, sum(r.records) AS records
  FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id) WHERE b.state = 'landed' GROUP BY 1, 2, 3) s
WHERE (k.pipeline, k.generation, k.kafka_partition) = (s.pipeline, s.generation, s.kafka_partition);
UPDATE onceover.kafka_partition k SET records_quarantined = s.records FROM (
  SELECT l.pipeline, p.generation, p.kafka_partition, sum(p.records) AS records
  FROM onceover.landing l JOIN onceover.landing_part p USING (landing_id) WHERE l.quarantine_day IS NOT NULL
  GROUP BY 1, 2, 3) s
WHERE (k.pipeline, k.generation, k.kafka_partition) = (s.pipeline, s.generation, s.kafka_partition);
UPDATE onceover.pipeline p SET batches_landed = s.batches
FROM (SELECT pipeline, count(*) AS batches FROM onceover.batch WHERE state = 'landed' GROUP BY 1) s
WHERE p.name = s.pipeline;
"""


def upgrade() -> None:
    op.execute(TABLES + TOTALS_SO_FAR)
