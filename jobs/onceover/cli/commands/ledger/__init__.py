"""`onceover ledger`: the ledger's schema and size, the recovery of a lost ledger from raw, and a raw root's owner."""

from __future__ import annotations

import typer

from onceover.cli.lazy import LazyGroup


class Ledger(LazyGroup):
    """The commands for the ledger as a whole."""

    package = __name__
    panels = {None: ("migrate", "rebuild", "roll-up", "take-root")}  # noqa: RUF012 - as its base declares it


app = typer.Typer(
    name="ledger",
    cls=Ledger,
    no_args_is_help=True,
    help="Upgrade the ledger's schema, keep it small, rebuild a lost ledger, or take a raw root over.",
)
