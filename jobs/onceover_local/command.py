"""`onceover stack`, registered as an entry point: the embedded Kafka, HDFS, PostgreSQL and Airflow."""

from __future__ import annotations

from typing import Annotated

import typer

from onceover.cli.arguments import AsJson
from onceover.cli.exit_codes import FAILED, epilog
from onceover.cli.output import as_json, err, safe, say, styled, table

app = typer.Typer(
    name="stack", no_args_is_help=True, help="Start, stop and look at the embedded Kafka, HDFS, PostgreSQL and Airflow."
)
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


@app.command(
    epilog=epilog(
        "onceover stack up",
        "onceover stack up kafka hdfs postgres",
        "onceover stack up zookeeper",
        "onceover stack up --cluster",
    )
)
def up(parts: Parts = None, cluster: Cluster = False) -> None:
    """Start what is not running and wait until it answers. It stays up; its data lies in .local and stays too.

    With --cluster, jobs and Airflow use that Spark from then on; .local stays a cluster.
    """
    from onceover.config.endpoints import address
    from onceover_local.stack import Stack, surroundings

    surroundings.leave()
    stack = Stack(cluster=cluster)
    wanted = tuple(parts or stack.groups)
    with err().status("starting ...") as status:
        stack.up(wanted, lambda part, what: status.console.print(f"{part:22} {safe(what)}", style="dim"))
        if {"postgres", "airflow"} & set(wanted):
            from onceover.ledger.migrate import migrate

            migrate(address("postgres"))
    _show_addresses()
    if "airflow" in wanted:
        password = stack.local / "secrets" / "airflow-admin"
        say(
            f"Airflow's UI is at {address('airflow')}",
            f"Log in as admin; the password is in {password}",
            f"Who only looks logs in as viewer; the password is in {password.with_name('airflow-viewer')}",
            whole=True,
        )


@app.command(epilog=epilog("onceover stack down"))
def down() -> None:
    """Stop everything that runs in .local, whoever started it. Data stays."""
    from onceover_local.stack import Stack

    with err().status("stopping ...") as status:
        stopped = Stack().down(lambda part, what: status.console.print(f"{part:22} {safe(what)}", style="dim"))
    say(f"{len(stopped)} processes stopped; data stays in .local" if stopped else "nothing was running")


@app.command(
    epilog=epilog(
        "onceover stack status",
        "onceover stack status --json",
        codes={FAILED: "at least one process is not up"},
    )
)
def status(json: AsJson = False) -> None:
    """Say of every process whether it is up, where it answers and where its log is.

    up: it answers. unready: it runs and does not answer. dead: it was started and is gone. down: it was not started.
    """
    from onceover_local.stack import Stack

    found = Stack().status()
    if json:
        as_json(
            [
                {
                    "name": each.name,
                    "group": each.group,
                    "state": each.state,
                    "pid": each.pid,
                    "address": each.address,
                    "log": str(each.log),
                }
                for each in found
            ]
        )
    else:
        rows = [
            (each.name, styled(each.state), None if each.pid is None else str(each.pid), each.address or None, each.log)
            for each in found
        ]
        say(table(["process", "state", "pid", "address", "log"], rows))
    if any(each.state != "up" for each in found):
        raise typer.Exit(FAILED)


def _show_addresses() -> None:
    from onceover.config import endpoints

    found = endpoints.read(endpoints.endpoints_file())
    say(table(["part", "address"], found.items()))
    say(f"These addresses stand in {endpoints.endpoints_file()}", whole=True)
