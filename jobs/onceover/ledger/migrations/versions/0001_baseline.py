"""The baseline: all tables of the ledger, as the modules of `schema` declare them.

A revision is `4.` and the number of its file. Other numbers name other chains, whose databases
`onceover.ledger.database` refuses.
"""

from __future__ import annotations

from alembic import op

from onceover.ledger.schema import batches, missing_records, pipelines, windows

revision = "4.1"
down_revision = None


def upgrade() -> None:
    for part in (pipelines, batches, windows, missing_records):
        op.execute(part.TABLES)
