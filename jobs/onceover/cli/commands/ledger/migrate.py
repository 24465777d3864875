"""`onceover ledger migrate`: the ledger's schema."""

from __future__ import annotations

from onceover.cli.command import command
from onceover.cli.output import Answer
from onceover.config.endpoints import address
from onceover.ledger import database


@command("onceover ledger migrate")
def migrate() -> Answer:
    """Make the ledger's tables in a database that has none. The command may be repeated, or run by two at once."""
    database.upgrade_schema(address("postgres"))
    return Answer({"version": database.SCHEMA_VERSION}, [f"the ledger is at version {database.SCHEMA_VERSION}"])
