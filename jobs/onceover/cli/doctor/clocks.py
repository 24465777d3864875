"""Whether the clocks of this machine and of the servers agree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from onceover.cli.doctor.outcome import Outcome, date_of
from onceover.config.endpoints import address
from onceover.errors import OnceoverError
from onceover.ledger.database import connect, read_clock

SKEW_SECONDS = 5.0
RESOLUTION_SECONDS = 1.0  # of the date in a web server's answer


def clocks(now: Callable[[], float] = time.time) -> Iterator[Outcome]:
    """This machine's clock against every clock that can be asked for; Kafka tells nobody its own.

    Who holds a window or an epoch is decided by the database's clock alone, so no skew makes a window wrong; but
    producers stamp records by theirs, and tokens and tickets expire by one clock that were made by another.
    """
    agree = []
    for name, ask in (("PostgreSQL", _postgres), ("the NameNode", _namenode), ("Airflow", _airflow)):
        try:
            before = now()
            theirs = ask()
            after = now()
        except (OnceoverError, OSError, ValueError):
            continue  # whether it answers is looked at elsewhere
        if theirs is None:
            continue
        skew = apart(theirs, before, after)
        if abs(skew) > SKEW_SECONDS:
            what = (
                f"the clock of {name} is {abs(skew):,.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's; let "
                "both follow one time server (chrony, systemd-timesyncd)"
            )
            yield Outcome("clocks", "wrong", what)
        else:
            agree.append(name)
    if agree:
        what = f"{', '.join(agree)} and this machine agree within {SKEW_SECONDS:.0f} s; Kafka tells nobody its clock"
        yield Outcome("clocks", "fine", what)


def apart(theirs: float, before: float, after: float) -> float:
    """Seconds by which their clock is surely ahead (negative: behind): asked at `before`, answered until `after`."""
    if theirs > after:
        return theirs - after
    return min(0.0, theirs + RESOLUTION_SECONDS - before)


def _postgres() -> float:
    with connect(address("postgres"), "onceover doctor") as connection:
        return read_clock(connection).timestamp()


def _namenode() -> float | None:
    return date_of(f"{address('webhdfs')}/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus")


def _airflow() -> float | None:
    return date_of(f"{address('airflow')}/api/v2/monitor/health")
