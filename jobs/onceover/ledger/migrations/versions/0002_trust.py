"""What a certificate rests on: the ledger's identity, owned raw roots, adopted records, conflicts, cut logs."""

from __future__ import annotations

from alembic import op

revision = "1.2"
down_revision = "1.1"

ROOT = """
CREATE TABLE onceover.ledger (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  ledger_id uuid NOT NULL DEFAULT gen_random_uuid(),
  created_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO onceover.ledger DEFAULT VALUES;
COMMENT ON TABLE onceover.ledger IS 'This ledger''s identity, which the marker of each raw root that it owns repeats.';

ALTER TABLE onceover.driver ADD COLUMN holder uuid NOT NULL;
COMMENT ON COLUMN onceover.driver.holder IS
  'Fences the epoch: a ledger restored from a backup gives the same epoch again, but never the same holder.';
CREATE TABLE onceover.driver_epoch (
  holder uuid PRIMARY KEY,
  pipeline text NOT NULL,
  epoch bigint NOT NULL,
  owner text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  code_version text,
  spark_version text
);
CREATE INDEX ON onceover.driver_epoch (pipeline, epoch);
COMMENT ON COLUMN onceover.driver_epoch.spark_version IS
  'Of the Spark that evaluated this driver''s records; NULL if the driver evaluated none.';
COMMENT ON TABLE onceover.driver_epoch IS
  'Every driver''s epoch: a marker that names another was written by a driver that this ledger does not know.';

ALTER TABLE onceover."window" ALTER COLUMN token DROP DEFAULT, ALTER COLUMN token DROP NOT NULL;
ALTER TABLE onceover."window" ALTER COLUMN token TYPE uuid USING NULL;
ALTER TABLE onceover.repair ALTER COLUMN token TYPE uuid USING NULL;

CREATE TABLE onceover.root_change (
  change_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL,
  raw_root text NOT NULL,
  who text NOT NULL,
  why text NOT NULL,
  before jsonb,
  after jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE onceover.root_change IS 'Raw roots that this ledger took over by a person''s word.';
"""

ADOPT = """
ALTER TABLE onceover.released RENAME TO exact_range;
ALTER TABLE onceover.exact_range DROP CONSTRAINT released_batch_id_fkey;
ALTER TABLE onceover.exact_range ADD FOREIGN KEY (batch_id) REFERENCES onceover.batch;
COMMENT ON TABLE onceover.exact_range IS
  'The exact IDs of a batch that read no offset range of Kafka: released, adopted from raw, or found by a rebuild.';

CREATE TABLE onceover.adoption (
  batch_id bigint PRIMARY KEY REFERENCES onceover.batch,
  pipeline text NOT NULL,
  window_start timestamptz,
  quarantine_day date,
  who text NOT NULL,
  why text NOT NULL,
  CHECK ((window_start IS NULL) <> (quarantine_day IS NULL))
);
CREATE INDEX ON onceover.adoption (pipeline, window_start);
COMMENT ON COLUMN onceover.landing.byte_end IS
  'Equals byte_start where the lines were in the file before: an adoption appends nothing.';
COMMENT ON TABLE onceover.adoption IS
  'Batches that landed intact lines which raw held, no landing accounted for, and Kafka no longer held.';

ALTER TABLE onceover.certificate ADD COLUMN pending jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN onceover.certificate.pending IS
  'Offset ranges of intact lines within the frozen length that had landed nowhere, and that Kafka still held: '
  '[generation, kafka_partition, start, end].';
CREATE INDEX ON onceover.certificate (pipeline) WHERE pending <> '[]';
ALTER TABLE onceover.certificate ADD COLUMN by_value bigint;
COMMENT ON COLUMN onceover.certificate.by_value IS
  'Records whose VALUE the repair evaluated again; the others count by the columns in their lines. NULL: raw not read.';

CREATE TABLE onceover.quarantine_search (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  quarantine_day date NOT NULL,
  bytes bigint NOT NULL,
  pending bigint NOT NULL,
  beyond jsonb NOT NULL DEFAULT '[]',
  searched_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (pipeline, quarantine_day)
);
COMMENT ON TABLE onceover.quarantine_search IS
  'Quarantine files that a repair searched for orphans: their bytes then, and the records left that Kafka still held.';
COMMENT ON COLUMN onceover.quarantine_search.beyond IS
  'The first line beyond each log''s end, as it was seen: [generation, kafka_partition, offset, offset + 1].';

ALTER TABLE onceover.accepted_loss ADD COLUMN kind text NOT NULL DEFAULT 'lost'
  CHECK (kind IN ('lost', 'unreadable', 'overwritten')),
  ADD COLUMN relanded_at timestamptz;
COMMENT ON COLUMN onceover.accepted_loss.relanded_at IS
  'When records of the range landed or were adopted after all: what of it stayed lost is a row of its own.';
"""

CUT = """
ALTER TABLE onceover.batch_range ADD COLUMN leader_epochs jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN onceover.batch_range.leader_epochs IS
  'Kafka leader epochs of the records read: [epoch, first offset] by offset; epoch -1: records without; []: unknown.';

ALTER TABLE onceover.kafka_partition ADD COLUMN diverged_from bigint, ADD COLUMN unknown_from bigint,
  ADD COLUMN compared_epoch integer, ADD COLUMN diverged_after bigint,
  ADD COLUMN overwritten int8multirange NOT NULL DEFAULT '{}';
COMMENT ON COLUMN onceover.kafka_partition.diverged_after IS
  'The last batch that began before diverged_from was recorded: later ones read what the log has now.';
COMMENT ON COLUMN onceover.kafka_partition.overwritten IS
  'Landed offsets under which the log had, or may have had, other records that it lost before they were read.';
COMMENT ON COLUMN onceover.kafka_partition.diverged_from IS
  'First landed offset under which the log now has another record; NULL once it is read again from there.';
COMMENT ON COLUMN onceover.kafka_partition.unknown_from IS
  'First landed offset in the log whose leader epoch is unknown, so that it has to be read again; NULL: none.';
COMMENT ON COLUMN onceover.kafka_partition.compared_epoch IS
  'The log''s leader epoch when landed ranges were last compared with it; -1: to be compared again; NULL: not compared '
  'since the ledger was rebuilt, or IDs were adopted.';

CREATE TABLE onceover.suspicion (
  suspicion_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  start_offset bigint NOT NULL,
  end_offset bigint NOT NULL,
  windows timestamptz[] NOT NULL,
  times integer NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  settled_at timestamptz,
  CHECK (start_offset < end_offset)
);
COMMENT ON COLUMN onceover.suspicion.times IS
  'How often the offsets were suspected: a comparison settles only what was suspected before it.';
CREATE INDEX ON onceover.suspicion (pipeline) WHERE settled_at IS NULL;
COMMENT ON TABLE onceover.suspicion IS
  'IDs that landed more than once, perhaps with different contents: the windows'' lines have to be compared.';

CREATE TABLE onceover.conflict (
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  generation text NOT NULL,
  kafka_partition integer NOT NULL,
  record_offset bigint NOT NULL,
  content text NOT NULL,
  window_start timestamptz,
  event_time timestamptz,
  leader_epoch integer,
  first_seen_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (pipeline, generation, kafka_partition, record_offset, content)
);
CREATE INDEX ON onceover.conflict (pipeline, window_start);
COMMENT ON TABLE onceover.conflict IS
  'IDs with two contents: a row for each content, with its window (NULL: quarantine). A person decides which counts.';
COMMENT ON COLUMN onceover.conflict.leader_epoch IS
  'Leader epoch of the content that Kafka''s log held when the contents were compared; NULL: any other.';

ALTER TABLE onceover.decision ADD COLUMN contents text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN onceover.decision.contents IS
  'The contents that the person decided between: with a further one the ID is undecided again.';
"""

RESTORED = """
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

ALTER TABLE onceover."window" ADD COLUMN expired_why text;
COMMENT ON COLUMN onceover."window".expired_why IS
  'Why the window counts as expired without a retention of this ledger; NULL: this ledger''s retention expired it.';
ALTER TABLE onceover."window" ADD COLUMN by_value boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN onceover."window".by_value IS
  'Whether each repair evaluates the values of all its records, since a person doubts the columns in its lines.';
ALTER TABLE onceover."window" ADD COLUMN kept_rows integer;
ALTER TABLE onceover."window" ADD COLUMN kept_hash text;
COMMENT ON COLUMN onceover."window".kept_hash IS
  'Of rows that were there without raw when the ledger was rebuilt: no repair replaces them by rows with another '
  'fingerprint (kept_rows, kept_hash). NULL: no such rows, or proved since.';
ALTER TABLE onceover.compaction ALTER COLUMN certificate_id DROP NOT NULL;
COMMENT ON COLUMN onceover.compaction.certificate_id IS 'NULL: the file was found by a rebuild of the ledger.';
ALTER TABLE onceover.expiry ADD COLUMN kept_at timestamptz;
COMMENT ON COLUMN onceover.expiry.kept_at IS
  'When a file that had already been moved away was put back, because it held more than had expired.';
"""


SMALL = """
CREATE TABLE onceover.gap_set (
  gap_set_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline text NOT NULL REFERENCES onceover.pipeline,
  fingerprint text NOT NULL,
  gaps jsonb NOT NULL,
  UNIQUE (pipeline, fingerprint)
);
COMMENT ON TABLE onceover.gap_set IS
  'Offsets between the first and the last landed ones that had not landed, once for all certificates that say the '
  'same: [generation, kafka_partition, start, end].';
ALTER TABLE onceover.certificate ADD COLUMN gap_set_id bigint REFERENCES onceover.gap_set;
COMMENT ON COLUMN onceover.certificate.accounted IS
  'Offset ranges that were landed by then, but for the gaps of gap_set_id: [generation, kafka_partition, start, end].';

ALTER TABLE onceover.certificate RENAME COLUMN losses TO listed_losses;
ALTER TABLE onceover.certificate ADD COLUMN losses int8multirange NOT NULL DEFAULT '{}';
UPDATE onceover.certificate SET losses = (SELECT range_agg(int8range(loss_id, loss_id + 1)) FROM unnest(listed_losses)
  AS loss_id) WHERE listed_losses <> '{}';
ALTER TABLE onceover.certificate DROP COLUMN listed_losses;
COMMENT ON COLUMN onceover.certificate.losses IS 'The accepted losses that it states: ranges of loss_id.';
"""


def upgrade() -> None:
    for part in (ROOT, ADOPT, CUT, RESTORED, SMALL):
        op.execute(part)
