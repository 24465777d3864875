"""`onceover ledger`: its schema, and a pipeline's part of it written anew from raw."""

from __future__ import annotations

import typer

from onceover.cli.lazy import LazyGroup


class Ledger(LazyGroup):
    """What is done to the ledger as a whole."""

    package = __name__
    panels = {None: ("migrate", "rebuild")}  # noqa: RUF012 - as its base declares it


app = typer.Typer(name="ledger", cls=Ledger, no_args_is_help=True, help="Look after the ledger.")
