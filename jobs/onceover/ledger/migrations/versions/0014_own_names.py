"""Names of our own that no key, measure or pipeline can have, and an identity of rows for publications.

A key `stage` met our column, and a pipeline that was called as another one's index met that. With a publication FOR ALL
TABLES, PostgreSQL takes no UPDATE or DELETE of a table without a primary key or this identity.
"""

from __future__ import annotations

from alembic import op

revision = "1.14"
down_revision = "1.13"

# A lost ledger leaves these tables, and they may have the new names already.
_COLUMNS = """
DO $$
DECLARE of_pipeline text;
BEGIN
  FOR of_pipeline IN
    SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum = 1 AND attname = 'stage'
    WHERE relnamespace = 'staging'::regnamespace AND relkind = 'r'
  LOOP
    EXECUTE format('ALTER TABLE staging.%I RENAME COLUMN stage TO _stage', of_pipeline);
  END LOOP;
END $$
"""
_INDEXES = """
DO $$
DECLARE of_index record;
BEGIN
  FOR of_index IN
    SELECT n.nspname AS schema, i.relname AS name,
      '_' || t.relname || CASE n.nspname WHEN 'staging' THEN '_stage' ELSE '_key' END AS own
    FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_class t ON t.oid = indrelid
      JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE n.nspname IN ('staging', 'aggregates') AND NOT starts_with(i.relname, '_')
      AND ((n.nspname = 'staging' AND i.relname = t.relname || '_stage') OR (n.nspname = 'aggregates' AND indisunique))
  LOOP
    EXECUTE format('ALTER INDEX %I.%I RENAME TO %I', of_index.schema, of_index.name, of_index.own);
  END LOOP;
END $$
"""


def upgrade() -> None:
    op.execute(_COLUMNS)
    op.execute(_INDEXES)
    op.execute("ALTER TABLE onceover.revision_row REPLICA IDENTITY FULL")
