"""The check of the Spark cluster that runs jobs: whether one of its masters accepts connections."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from onceover.cli.doctor.outcome import SECONDS, Outcome
from onceover.config import endpoints

_STANDALONE = "spark://"


def check_spark() -> Iterator[Outcome]:
    """Check the masters of a standalone cluster. Yields nothing if no cluster is named: jobs then run Spark locally."""
    master = endpoints.find_address("spark")
    if master is None or master.startswith("local"):
        return
    if not master.startswith(_STANDALONE):
        yield Outcome("Spark", "note", f"jobs run on {master}; check with its own tools whether it has room for them")
        return
    masters = master.removeprefix(_STANDALONE).split(",")  # one leads, the others wait
    silent: list[str] = []
    for each in masters:
        try:
            parts = urlsplit(f"//{each}")
            socket.create_connection((parts.hostname or "", parts.port or 0), timeout=SECONDS).close()
        except (OSError, ValueError) as error:
            silent.append(f"{each} ({error})")
        else:
            yield Outcome("Spark", "fine", f"the master at {each} accepts connections")
    if silent:
        what = f"no answer from {', '.join(silent)}; {endpoints.start_or_set('spark')}"
        yield Outcome("Spark", "wrong" if len(silent) == len(masters) else "note", what)
