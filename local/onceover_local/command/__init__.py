"""`onceover stack`, registered as an entry point: the embedded Kafka, HDFS, PostgreSQL and Airflow."""

from __future__ import annotations

import typer

from onceover.cli.lazy import LazyGroup


class StackCommands(LazyGroup):
    """The commands for the embedded stack."""

    package = __name__
    panels = {None: ("up", "down", "status")}  # noqa: RUF012 - as its base declares it


app = typer.Typer(
    name="stack",
    cls=StackCommands,
    no_args_is_help=True,
    help="Start, stop and inspect the embedded Kafka, HDFS, PostgreSQL and Airflow.",
)
