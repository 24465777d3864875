"""What `onceover doctor` asks of the embedded stack, registered as entry points: its ports, and its scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import psutil

from onceover.cli.doctor.outcome import Outcome
from onceover.config import endpoints
from onceover_local.stack import Stack
from onceover_local.stack.process import Process


def ports() -> Iterator[Outcome]:
    """Whether somebody else listens on a port that the embedded stack keeps for a part that is down."""
    taken = Stack().taken_ports()
    told = endpoints.read_endpoints(endpoints.endpoints_file()).values()
    for name, port in taken.items():
        named = any(re.search(rf":{port}\b", each) for each in told)
        what = f"{port}, kept for {name} of the embedded stack, is answered by something else"
        where = ", and endpoints.json still sends everybody there" if named else ""
        mend = "`onceover stack up` takes another port and writes the addresses anew"
        yield Outcome("ports", "wrong" if named else "note", f"{what}{where}; {mend}")


def scheduler_environment(where: str) -> Mapping[str, str] | None:
    """The environment of the embedded stack's scheduler, if that is the Airflow which is asked and it runs here."""
    local = endpoints.local_folder()
    if endpoints.read_endpoints(endpoints.endpoints_file(local)).get("airflow") != where:
        return None
    pid = Process("airflow-scheduler", local).pid()
    try:
        return psutil.Process(pid).environ() if pid else None
    except psutil.Error:
        return None
