"""The making of the ledger's tables, in a database that has none."""

from __future__ import annotations

from onceover.ledger.database import SCHEMA_VERSION, connect, read_version, require_current
from onceover.ledger.schema import batches, missing_records, pipelines, windows

_LOCK = 0x6F6E6365  # any constant: an advisory lock's name, so that two first starts do not race


def upgrade_schema(address: str) -> None:
    """Bring a database to this code's schema, in one transaction, once even if two processes start together.

    Raises TerminalError, and writes nothing, if it has a ledger of another version.
    """
    with connect(address, "onceover migrate") as connection, connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if read_version(connection) is not None:
            require_current(connection)
            return
        connection.execute("CREATE SCHEMA IF NOT EXISTS onceover")
        for part in (pipelines, batches, windows, missing_records):
            connection.execute(part.TABLES.encode())
        connection.execute("INSERT INTO onceover.ledger (schema_version) VALUES (%s)", [SCHEMA_VERSION])
