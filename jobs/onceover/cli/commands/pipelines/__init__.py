"""`onceover pipelines`: which there are, whether their TOMLs are right, and a changed contract put into force."""

from __future__ import annotations

import typer

from onceover.cli.lazy import LazyGroup


class Pipelines(LazyGroup):
    """What is about TOMLs."""

    package = __name__
    panels = {None: ("list", "check", "migrate")}  # noqa: RUF012 - as its base declares it


app = typer.Typer(
    name="pipelines", cls=Pipelines, no_args_is_help=True, help="List pipelines, check their TOMLs, change a contract."
)
