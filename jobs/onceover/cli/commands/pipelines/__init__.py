"""`onceover pipelines`: the list of pipelines, the check of their TOMLs, and the change of a contract."""

from __future__ import annotations

import typer

from onceover.cli.lazy import LazyGroup


class Pipelines(LazyGroup):
    """The commands for pipelines' TOMLs."""

    package = __name__
    panels = {None: ("list", "check", "migrate")}  # noqa: RUF012 - as its base declares it


app = typer.Typer(
    name="pipelines", cls=Pipelines, no_args_is_help=True, help="List pipelines, check their TOMLs, change a contract."
)
