"""`onceover ledger`: the ledger's schema."""

from __future__ import annotations

import typer

from onceover.cli.codes import epilog
from onceover.cli.output import say

app = typer.Typer(name="ledger", no_args_is_help=True, help="Look after the ledger's schema.")


@app.command(epilog=epilog("onceover ledger migrate"))
def migrate() -> None:
    """Bring the ledger's schema to this version of the code. Twice, or by two at once, is the same as once."""
    from onceover.endpoints import address
    from onceover.ledger import database

    database.migrate(address("postgres"))
    say(f"the ledger is at version {database.HEAD}")
