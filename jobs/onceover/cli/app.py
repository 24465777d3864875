"""The program `onceover`: its commands, and how every one of them ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Annotated, Any, NoReturn

import typer

from onceover import __version__
from onceover.cli.exit_codes import epilog
from onceover.cli.lazy import AnyCommand, LazyGroup, group_of
from onceover.cli.output import print_error
from onceover.errors import OnceoverError


class Program(LazyGroup):
    """Ends with one line and an exit code for everything expected; only a bug of ours shows a traceback."""

    package = "onceover.cli.commands"
    # What a person wants to do, in the order in which `onceover --help` lists it.
    panels = {  # noqa: RUF012 - as its base declares it
        "Look": ("windows", "explain", "holes", "doctor"),
        "Repair": ("repair", "restore"),
        "Prove": ("verify", "audit", "sweep"),
        "Decide": ("decide", "accept-loss"),
        "Keep": ("quarantine", "compact", "retention", "offsets", "ledger"),
        "Run": ("ingest", "metrics", "pipelines"),
    }

    def get_command(self, ctx: Any, cmd_name: str) -> AnyCommand | None:
        if cmd_name not in self.commands:
            self._find_registered()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        self._find_registered()
        return super().list_commands(ctx)

    def _find_registered(self) -> None:
        """Add the groups of other packages that are installed, to the last panel: the embedded stack's."""
        for each in entry_points(group="onceover.commands"):
            if each.name not in self.commands:
                self.commands[each.name] = group_of(each.load())
                self.commands[each.name].rich_help_panel = list(self.panels)[-1]  # type: ignore[attr-defined]

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
            print_error(str(error))
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
    print_error(f"{said.rstrip('.')}; see `{context.command_path if context else 'onceover'} --help`")


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
