"""`onceover stack up`: starts what does not run."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.exit_codes import epilog
from onceover.cli.output import draw_table, err, safe, say
from onceover.config import endpoints
from onceover.ledger.migrate import upgrade_schema
from onceover_local.stack import Stack, surroundings

Cluster = Annotated[
    bool,
    typer.Option("--cluster", help="As in a deployment: three DataNodes, and Spark with a master and two workers."),
]
Parts = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PART",
        help="kafka, hdfs, postgres or airflow, all four if none is named; also zookeeper, hbase; spark on a cluster.",
    ),
]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog=epilog(
            "onceover stack up",
            "onceover stack up kafka hdfs postgres",
            "onceover stack up zookeeper",
            "onceover stack up --cluster",
        )
    )(up)


def up(parts: Parts = None, cluster: Cluster = False) -> None:
    """Start what is not running and wait until it answers. It stays up; its data lies in .local and stays too.

    With --cluster, jobs and Airflow use that Spark from then on; .local stays a cluster.
    """
    surroundings.leave()
    stack = Stack(cluster=cluster)
    wanted = tuple(parts or stack.groups)
    with err().status("starting ...") as status:
        stack.up(wanted, lambda part, what: status.console.print(f"{part:22} {safe(what)}", style="dim"))
        if {"postgres", "airflow"} & set(wanted):
            upgrade_schema(endpoints.address("postgres"))
    _show_addresses()
    if "airflow" in wanted:
        password = stack.local / "secrets" / "airflow-admin"
        say(
            f"Airflow's UI is at {endpoints.address('airflow')}",
            f"Log in as admin; the password is in {password}",
            f"Who only looks logs in as viewer; the password is in {password.with_name('airflow-viewer')}",
            whole=True,
        )


def _show_addresses() -> None:
    found = endpoints.read_endpoints(endpoints.endpoints_file())
    say(draw_table(["part", "address"], found.items()))
    say(f"These addresses stand in {endpoints.endpoints_file()}", whole=True)
