"""Exporter of the metrics on loopback. Each scrape reads the ledger, so that a crash loses no state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Lock
from typing import Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from onceover.context import open_ledger
from onceover.errors import OnceoverError, TransientError
from onceover.ledger.database import DatabaseError
from onceover.observability import metric_values
from onceover.observability.metrics import build_metrics, build_up_metric

HOST: Final = "127.0.0.1"


class LedgerCollector(Collector):
    """A collector of all metrics from the ledger; of `onceover_up` 0 alone if the ledger does not answer. `problem` is
    that error, reported to `say` once, not at each scrape."""

    def __init__(self, overdue_after: timedelta, say: Callable[[str], None]) -> None:
        self._overdue_after, self._say = overdue_after, say
        self._alone = Lock()  # however many scrape at once, they take one connection of the ledger's
        self.problem: OnceoverError | None = None

    def collect(self) -> Iterator[Metric]:
        try:
            signals = self._read()
        except OnceoverError as error:
            if str(error) != str(self.problem):
                self._say(str(error))
            self.problem = error
            yield build_up_metric(False)
            return
        self.problem = None
        yield from build_metrics(signals)

    def _read(self) -> tuple[metric_values.Signals, ...]:
        try:
            with self._alone, open_ledger("metrics") as connection:
                return metric_values.read_signals(connection, self._overdue_after)
        except DatabaseError as error:
            raise TransientError(f"the ledger could not be read for its metrics: {error}") from error


def create_registry(collector: LedgerCollector) -> CollectorRegistry:
    """Return a registry with only this collector: the global one would add metrics of this process."""
    own = CollectorRegistry()
    own.register(collector)
    return own


@contextmanager
def serve_metrics(collector: LedgerCollector, port: int) -> Iterator[str]:
    """Serve scrapes while entered, each in a thread; yield the URL. Port 0 is any free port.

    Raises TransientError if the port is taken.
    """
    try:
        server, thread = start_http_server(port, HOST, create_registry(collector))
    except OSError as error:
        raise TransientError(
            f"port {port} on {HOST} is not available ({error.strerror}); stop the process that listens there, or "
            "choose another port with --port"
        ) from error
    try:
        yield f"http://{HOST}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
