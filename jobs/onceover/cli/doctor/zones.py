"""The check of time zone data: PostgreSQL's, by which readers convert the starts of windows, against the contract's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from onceover.cli.doctor.outcome import Outcome
from onceover.ledger.database import Connection
from onceover.ledger.zone_offsets import read_zone_offsets
from onceover.model.pipeline import Pipeline
from onceover.model.window import format_moment, from_ms

_LAST = 2_145_916_800  # 2038-01-01: PostgreSQL may know no later change


def check_zone(connection: Connection, pipeline: Pipeline) -> Iterator[Outcome]:
    """Compare the offsets of the pipeline's zone at each change, and just before it."""
    changes, zone = pipeline.contract.zone_changes, pipeline.contract.window_zone
    wanted = dict(changes) | {second - 1: before for (_, before), (second, _) in pairwise(changes)}
    wanted = {second: offset for second, offset in wanted.items() if second < _LAST}
    found = read_zone_offsets(connection, zone, list(wanted))
    if found is None:
        what = f"PostgreSQL does not know the zone {zone}: readers cannot convert the starts of windows to it there"
        yield Outcome(pipeline.name, "note", what)
    elif differing := [second for second in sorted(wanted) if found[second] != wanted[second]]:
        at = format_moment(from_ms(differing[0] * 1000))
        what = (
            f"PostgreSQL has other time zone data of {zone} than the contract, first at {at}: windows follow the "
            "contract, but a reader's AT TIME ZONE gives other times; bring PostgreSQL's data up to date"
        )
        yield Outcome(pipeline.name, "wrong", what)
    else:
        yield Outcome(pipeline.name, "fine", f"PostgreSQL's changes of {zone} are the contract's")
