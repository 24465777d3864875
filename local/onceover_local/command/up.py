"""`onceover stack up`: the start of the embedded stack."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.exit_codes import format_epilog
from onceover.cli.output import draw_table, get_stderr, say
from onceover.config import endpoints
from onceover.ledger.migrate import upgrade_schema
from onceover.printable import escape
from onceover_local.stack import Stack, surroundings

Cluster = Annotated[
    bool,
    typer.Option("--cluster", help="Start three DataNodes, and Spark with a master and two workers."),
]
Parts = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PART",
        help="kafka, hdfs, postgres, airflow, zookeeper, hbase; spark with --cluster. Default: the first four.",
    ),
]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=format_epilog(
            "onceover stack up",
            "onceover stack up kafka hdfs postgres",
            "onceover stack up zookeeper",
            "onceover stack up --cluster",
        )
    )(up)


def up(parts: Parts = None, cluster: Cluster = False) -> None:
    """Start the parts that do not run and wait until they answer. They keep running; their data is kept in .local.

    With --cluster, jobs and Airflow use that Spark from then on, and .local remains a cluster.
    """
    surroundings.leave()
    stack = Stack(cluster=cluster)
    groups = tuple(parts or stack.groups)
    with get_stderr().status("starting ...") as status:
        stack.up(groups, lambda part, what: status.console.print(f"{part:22} {escape(what)}", style="dim"))
        if {"postgres", "airflow"} & set(groups):
            upgrade_schema(endpoints.address("postgres"))
    _show_addresses()
    if "airflow" in groups:
        password = stack.local / "secrets" / "airflow-admin"
        say(
            f"Airflow's UI is at {endpoints.address('airflow')}",
            f"Log in as admin; the password is in {password}",
            f"To repair only, log in as oncall; the password is in {password.with_name('airflow-oncall')}",
            f"To look only, log in as viewer; the password is in {password.with_name('airflow-viewer')}",
            whole=True,
        )


def _show_addresses() -> None:
    addresses = endpoints.read_endpoints(endpoints.endpoints_file())
    say(draw_table(["part", "address"], addresses.items()))
    say(f"These addresses are kept in {endpoints.endpoints_file()}", whole=True)
