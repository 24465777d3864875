"""The embedded stack's part in `onceover doctor`, registered as entry points: its ports, and its scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import psutil

from onceover.cli.doctor.outcome import Outcome
from onceover.config import endpoints
from onceover_local.stack import Stack
from onceover_local.stack.process import Process


def ports() -> Iterator[Outcome]:
    """Check that no other program listens on a port that the embedded stack keeps for a part that is down."""
    taken = Stack().find_taken_ports()
    addresses = endpoints.read_endpoints(endpoints.endpoints_file()).values()
    for name, port in taken.items():
        named = any(re.search(rf":{port}\b", each) for each in addresses)
        what = f"another program listens on port {port}, which the embedded stack keeps for {name}"
        where = ", and endpoints.json still names that port" if named else ""
        remedy = "run `onceover stack up`, which takes another port and updates endpoints.json"
        yield Outcome("ports", "wrong" if named else "note", f"{what}{where}; {remedy}")


def scheduler_environment(where: str) -> Mapping[str, str] | None:
    """Return the environment of the embedded stack's scheduler; None if it does not run or `where` is another's."""
    local = endpoints.local_folder()
    if endpoints.read_endpoints(endpoints.endpoints_file(local)).get("airflow") != where:
        return None
    pid = Process("airflow-scheduler", local).find_pid()
    try:
        return psutil.Process(pid).environ() if pid else None
    except psutil.Error:
        return None
