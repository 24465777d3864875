"""`onceover metrics`: metrics of all pipelines from the ledger, for Prometheus to scrape."""

from __future__ import annotations

import signal
import threading
from datetime import timedelta
from typing import Annotated

import typer
from prometheus_client import generate_latest

from onceover.cli.arguments import flag, option
from onceover.cli.command import command
from onceover.cli.exit_codes import TRY_LATER
from onceover.cli.output import print_error, print_progress
from onceover.observability.exporter import LedgerCollector, create_registry, serve_metrics

Port = Annotated[int, option("--port", "PORT", "Port on loopback; 0 takes a free one.", min=0, max=65535)]
Once = Annotated[bool, flag("--once", "Print the metrics and exit.")]
OverdueMinutes = Annotated[
    int, option("--overdue-minutes", "N", "Minutes after which a closed, uncertified window is overdue.", min=1)
]


@command(
    "onceover metrics",
    "onceover metrics --port 9500 --overdue-minutes 30",
    "onceover metrics --once | grep onceover_windows",
    codes={
        0: "a signal stopped it; with --once, the metrics were printed",
        TRY_LATER: "the port is taken; with --once, the ledger does not answer",
    },
)
def metrics(port: Port = 9464, once: Once = False, overdue_minutes: OverdueMinutes = 60) -> None:
    """Serve metrics of all pipelines at /metrics, in Prometheus' format, until SIGTERM or Ctrl-C.

    Every scrape reads the ledger, so that one process serves all pipelines and may be restarted at any time. If the
    ledger does not answer, a scrape returns `onceover_up 0` and nothing else.
    """
    overdue_after = timedelta(minutes=overdue_minutes)
    if once:
        collector = LedgerCollector(overdue_after, say=lambda _: None)  # the problem is raised below
        typer.echo(generate_latest(create_registry(collector)), nl=False)
        if collector.problem:
            raise collector.problem
        return
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with serve_metrics(LedgerCollector(overdue_after, say=print_error), port) as url:
        print_progress(f"metrics are at {url}")
        stop.wait()
