"""The program `onceover`: its commands, and how each of them exits."""

from __future__ import annotations

import errno
import sys
from importlib.metadata import entry_points
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from onceover import __version__
from onceover.cli import commands
from onceover.cli.command import unwrap
from onceover.cli.commands import ledger, pipelines
from onceover.cli.exit_codes import FAILED, format_epilog
from onceover.cli.lazy import list_commands
from onceover.cli.output import print_error
from onceover.entrypoint import drop_unwritten, open_closed_streams
from onceover.errors import OnceoverError

# The purpose of commands, in the order in which `onceover --help` lists them.
_COMMANDS: Final = {
    "Inspect": ("windows", "explain", "holes", "doctor"),
    "Repair": ("repair", "requests", "reread", "restore", "restate"),
    "Verify": ("verify", "audit", "sweep"),
    "Decide": ("accept-loss", "take"),
    "Maintain": ("quarantine", "compact", "retention", "offsets"),
    "Run": ("ingest", "metrics"),
}


class Program(TyperGroup):
    """The top group: an expected error prints one line and sets the exit code; only a bug shows a traceback."""

    def __init__(self, **attributes: Any) -> None:
        """Add the commands, and the groups that other installed packages register, like the embedded stack's."""
        super().__init__(**attributes)
        self.help = unwrap(self.help)
        for panel, names in _COMMANDS.items():
            self.commands.update(list_commands(commands.__name__, names, panel))
        groups = (ledger.app, pipelines.app, *(point.load() for point in entry_points(group="onceover.commands")))
        self.commands.update((str(group.name), group) for group in groups)

    def main(self, *arguments: Any, **named: Any) -> NoReturn:
        open_closed_streams()
        try:
            code = super().main(*arguments, **{**named, "standalone_mode": False})
        except OnceoverError as error:
            print_error(str(error))
            sys.exit(error.exit_code)
        except typer.TyperException as error:
            _print_usage_error(error)
            sys.exit(error.exit_code)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            drop_unwritten(sys.stdout)
            what = error.filename or "the answer, or a file,"
            print_error(f"{error.strerror}: {what} could not be written whole; what the command did before stays done")
            sys.exit(FAILED)
        finally:
            drop_unwritten(sys.stderr)
        sys.exit(code if isinstance(code, int) else 0)


def _print_usage_error(error: typer.TyperException) -> None:
    context = getattr(error, "ctx", None)
    message = error.format_message()
    if not message:  # a group without a command, whose help was printed already
        return
    print_error(f"{message.rstrip('.')}; see `{context.command_path if context else 'onceover'} --help`")


app = typer.Typer(
    name="onceover",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=format_epilog(
        "onceover doctor",
        "onceover windows flights --state failed",
        "onceover explain flights 2013-01-05T14:00Z",
        "onceover repair flights --from 2013-01-05T14:00Z --to 2013-01-05T15:00Z --dry-run",
    ),
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"onceover {__version__}")
        raise typer.Exit


@app.callback()
def onceover(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Find windows whose near-real-time aggregates are wrong, rebuild them from raw records, prove the result.

    Write every time with its zone, like 2013-01-01T05:00Z. A window is named by its start; --to is exclusive.
    Addresses come from ONCEOVER_KAFKA, ONCEOVER_WEBHDFS, ONCEOVER_HDFS, ONCEOVER_POSTGRES, ONCEOVER_AIRFLOW and, where
    offsets or raw are there, ONCEOVER_ZOOKEEPER and ONCEOVER_HBASE; a variable that is not set is replaced by the
    embedded stack's address from .local/endpoints.json.
    """
