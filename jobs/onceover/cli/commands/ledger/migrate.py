"""`onceover ledger migrate`: the ledger's schema."""

from __future__ import annotations

import typer

from onceover.cli.exit_codes import format_epilog
from onceover.cli.output import say
from onceover.config.endpoints import address
from onceover.ledger import database
from onceover.ledger import migrate as ledger_migrate


def add_to(app: typer.Typer) -> None:
    app.command(epilog=format_epilog("onceover ledger migrate"))(migrate)


def migrate() -> None:
    """Upgrade the ledger's schema to this version of the code. The command may be repeated, or run by two at once."""
    ledger_migrate.upgrade_schema(address("postgres"))
    say(f"the ledger is at version {database.HEAD}")
