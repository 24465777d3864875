"""`onceover stack up`: the start of the embedded stack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onceover.cli.arguments import flag
from onceover.cli.command import command
from onceover.cli.output import Answer, Table, get_stderr
from onceover.config import endpoints
from onceover.ledger.database import upgrade_schema
from onceover.printable import escape
from onceover_local.stack import Stack, surroundings

Cluster = Annotated[bool, flag("--cluster", "Start three DataNodes, and Spark with a master and two workers.")]
Kerberos = Annotated[bool, flag("--kerberos", "Secure HDFS by Kerberos, with a KDC of its own.")]
Parts = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PART",
        help="kafka, hdfs, postgres, airflow, zookeeper, hbase, registry, yarn; "
        "spark with --cluster. Default: the first four.",
    ),
]


@command(
    "onceover stack up",
    "onceover stack up kafka hdfs postgres",
    "onceover stack up zookeeper",
    "onceover stack up registry",
    "onceover stack up yarn",
    "onceover stack up --cluster",
    "onceover stack up --kerberos",
)
def up(parts: Parts = None, cluster: Cluster = False, kerberos: Kerberos = False) -> Answer:
    """Start the parts that do not run and wait until they answer. They keep running; their data is kept in .local.

    With --cluster, jobs and Airflow use that Spark from then on, and .local remains a cluster. With --kerberos, HDFS
    remains secured; a shell logs in by the environment that this prints, Airflow by itself.
    """
    surroundings.leave()
    stack = Stack(cluster=cluster, kerberos=kerberos)
    groups = tuple(parts or stack.groups)
    with get_stderr().status("starting ...") as status:
        stack.up(groups, lambda part, what: status.console.print(f"{part:22} {escape(what)}", style="dim"))
        if {"postgres", "airflow"} & set(groups):
            upgrade_schema(endpoints.address("postgres"))
    addresses = endpoints.read_endpoints(endpoints.endpoints_file())
    return Answer(
        addresses,
        [
            Table(list(addresses.items()), ("part", 0), ("address", 1)),
            f"These addresses are kept in {endpoints.endpoints_file()}",
            *([f"HDFS asks for a ticket: `source {stack.kdc.environment_file}`"] if stack.kdc else ()),
            *(_list_logins(stack.local / "secrets" / "airflow-admin") if "airflow" in groups else ()),
        ],
    )


def _list_logins(password: Path) -> list[str]:
    return [
        f"Airflow's UI is at {endpoints.address('airflow')}",
        f"Log in as admin; the password is in {password}",
        f"To repair only, log in as oncall; the password is in {password.with_name('airflow-oncall')}",
        f"To look only, log in as viewer; the password is in {password.with_name('airflow-viewer')}",
    ]
