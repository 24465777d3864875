"""The check of clocks: this machine's against the servers'."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from onceover.cli.doctor.namenodes import find_active, read_states
from onceover.cli.doctor.outcome import Outcome, read_date
from onceover.config.endpoints import address
from onceover.errors import OnceoverError
from onceover.ledger.database import connect, read_clock
from onceover.raw.kerberos import make_headers

SKEW_SECONDS = 5.0
RESOLUTION_SECONDS = 1.0  # of the date in a web server's answer


def check_clocks(now: Callable[[], float] = time.time) -> Iterator[Outcome]:
    """Compare this machine's clock with every readable one; Kafka does not report its own.

    Leases on windows and epochs use the database's clock alone, so no skew makes a window wrong; but producers stamp
    records by their own clocks, and a token made by one clock expires by another.
    """
    agree = []
    readers = (("PostgreSQL", _read_postgres), ("the NameNode", _read_namenode), ("Airflow", _read_airflow))
    for name, read in readers:
        try:
            before = now()
            theirs = read()
            after = now()
        except (OnceoverError, OSError, ValueError):
            continue  # other checks report a server that does not answer
        if theirs is None:
            continue
        skew = compute_skew(theirs, before, after)
        if abs(skew) > SKEW_SECONDS:
            what = (
                f"the clock of {name} is {abs(skew):,.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's; let "
                "both follow one time server (chrony, systemd-timesyncd)"
            )
            yield Outcome("clocks", "wrong", what)
        else:
            agree.append(name)
    if agree:
        what = f"{', '.join(agree)} and this machine agree within {SKEW_SECONDS:.0f} s; Kafka does not report its clock"
        yield Outcome("clocks", "fine", what)


def compute_skew(theirs: float, before: float, after: float) -> float:
    """Return the seconds by which the other clock is at least ahead (negative: behind), read between `before` and
    `after`."""
    if theirs > after:
        return theirs - after
    return min(0.0, theirs + RESOLUTION_SECONDS - before)


def _read_postgres() -> float:
    with connect(address("postgres"), "onceover doctor") as connection:
        return read_clock(connection).timestamp()


def _read_namenode() -> float | None:
    url = f"{find_active(read_states(address('webhdfs')))}/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus"
    return read_date(url, **make_headers(url))


def _read_airflow() -> float | None:
    return read_date(f"{address('airflow')}/api/v2/monitor/health")
