"""The program `onceover`: its commands, and how every one of them ends."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo, TyperInfo

from onceover import __version__
from onceover.cli.commands import (
    audit,
    compact,
    decisions,
    doctor,
    explain,
    holes,
    ingest,
    ledger,
    metrics,
    migrate,
    offsets,
    pipelines,
    quarantine,
    repair,
    retention,
    sweep,
    windows,
)
from onceover.cli.exit_codes import epilog
from onceover.cli.output import fail
from onceover.errors import OnceoverError


class Program(TyperGroup):
    """Ends with one line and an exit code for everything expected; only a bug of ours shows a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except OnceoverError as error:
            fail(str(error))
            sys.exit(error.exit_code)
        except typer.TyperException as error:
            _tell(error)
            sys.exit(error.exit_code)
        sys.exit(code if isinstance(code, int) else 0)


def _tell(error: typer.TyperException) -> None:
    context = getattr(error, "ctx", None)
    said = error.format_message()
    if not said:  # a group without a command, whose help was printed already
        return
    fail(f"{said.rstrip('.')}; see `{context.command_path if context else 'onceover'} --help`")


app = typer.Typer(
    name="onceover",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=epilog(
        "onceover doctor",
        "onceover windows flights --state failed",
        "onceover explain flights 2013-01-05T14:00Z",
        "onceover repair flights --from 2013-01-05T14:00Z --to 2013-01-05T15:00Z --dry-run",
    ),
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"onceover {__version__}")
        raise typer.Exit


@app.callback()
def onceover(
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Find windows whose near-real-time aggregates are wrong, rebuild them from raw, prove the result.

    Every time is written with its zone, like 2013-01-01T05:00Z; a window is named by its start, and --to is exclusive.
    Addresses come from ONCEOVER_KAFKA, ONCEOVER_WEBHDFS, ONCEOVER_HDFS, ONCEOVER_POSTGRES and ONCEOVER_AIRFLOW, and for
    offset stores from ONCEOVER_ZOOKEEPER and ONCEOVER_HBASE, else from what the embedded stack wrote to
    .local/endpoints.json.
    """


for command in (
    windows,
    explain,
    repair,
    audit,
    sweep,
    holes,
    quarantine,
    offsets,
    decisions,
    compact,
    retention,
    doctor,
    metrics,
    ingest,
):
    command.add_to(app)
migrate.add_to(pipelines.app)
# Groups of other packages that are installed: the embedded stack's.
groups = (pipelines.app, *(each.load() for each in entry_points(group="onceover.commands")), ledger.app)
for group in groups:
    app.add_typer(group)


# What a person wants to do, in the order in which `onceover --help` lists it.
_PANELS: Final = {
    "Look": ("windows", "explain", "holes", "doctor"),
    "Repair": ("repair", "restore"),
    "Prove": ("verify", "audit", "sweep"),
    "Decide": ("decide", "accept-loss"),
    "Keep": ("quarantine", "compact", "retention", "offsets", "ledger"),
    "Run": ("pipelines", "ingest", "metrics", "stack"),
}


def _arrange(of: typer.Typer) -> None:
    """Sort the commands into the panels; a group of another package goes to the last one. ValueError for a command that
    no panel names."""
    panel_of = {name: panel for panel, names in _PANELS.items() for name in names}
    order = list(panel_of)

    def name_of(command: CommandInfo) -> str:
        return command.name or str(getattr(command.callback, "__name__", ""))

    of.registered_commands.sort(key=lambda command: order.index(name_of(command)))
    for command in of.registered_commands:
        command.rich_help_panel = panel_of[name_of(command)]
    for group in of.registered_groups:
        named = str(group.typer_instance and group.typer_instance.info.name)
        group.rich_help_panel = panel_of.get(named, list(_PANELS)[-1])


_arrange(app)


def _flow(of: typer.Typer) -> None:
    """Let help text run to the terminal's width: rich keeps the line breaks of the source."""
    described: list[CommandInfo | TyperInfo] = [*of.registered_commands]
    if of.registered_callback is not None:
        described.append(of.registered_callback)
    for each in described:
        text = inspect.getdoc(each.callback) or ""
        each.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


for each in (app, *groups):
    _flow(each)
