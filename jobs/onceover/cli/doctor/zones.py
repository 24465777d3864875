"""The check of time zone data: the contract's beside this machine's, Java's, by which SQL converts times itself, and
PostgreSQL's, by which readers convert the starts of windows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from onceover.cli.doctor.outcome import Outcome
from onceover.ledger.database import Connection
from onceover.ledger.drivers import list_java_zone_data
from onceover.ledger.zone_offsets import read_zone_offsets
from onceover.model.contract import Contract
from onceover.model.window import format_moment, from_ms

_LAST = 2_145_916_800  # 2038-01-01: PostgreSQL may know no later change


def check_zone(connection: Connection, name: str, kept: Contract, here: Contract) -> Iterator[Outcome]:
    """Compare the offsets of the zone that the ledger keeps with this machine's, and with PostgreSQL's at each change
    and just before it."""
    changes, zone = kept.zone_changes, kept.window_zone
    if other := sorted(set(changes) ^ set(here.zone_changes)):
        what = (
            f"time zone data {here.zone_data} of this machine differ from the contract's {kept.zone_data} in {zone} "
            f"from {format_moment(from_ms(other[0][0] * 1000))} on: windows follow the contract; `onceover pipelines "
            f"migrate {name}` takes these data into the next version, if each window of the ledger stays as it is"
        )
        yield Outcome(name, "note", what)
    wanted = dict(changes) | {second - 1: before for (_, before), (second, _) in pairwise(changes)}
    wanted = {second: offset for second, offset in wanted.items() if second < _LAST}
    found = read_zone_offsets(connection, zone, list(wanted))
    if found is None:
        what = f"PostgreSQL does not know the zone {zone}: readers cannot convert the starts of windows to it there"
        yield Outcome(name, "note", what)
    elif differing := [second for second in sorted(wanted) if found[second] != wanted[second]]:
        at = format_moment(from_ms(differing[0] * 1000))
        what = (
            f"PostgreSQL has other time zone data of {zone} than the contract, first at {at}: windows follow the "
            "contract, but a reader's AT TIME ZONE gives other times; bring PostgreSQL's data up to date"
        )
        yield Outcome(name, "wrong", what)
    else:
        what = f"PostgreSQL's changes of {zone} are the contract's, of {kept.zone_data}"
        java = " and ".join(list_java_zone_data(connection, name))
        # Windows follow the contract alone, so no release of Java's makes a window wrong.
        yield Outcome(name, "fine", what + (f"; SQL that names a zone itself followed Java's {java}" if java else ""))
