"""What raw and Kafka hold, and what the aggregates count, of a replayed pipeline: read from themselves.

The ledger says only which windows are certified, what their certificates name as lost, and how far it is. What
retention or a fault took away lies beside the window files, and counts as held.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from tests.integration.events import event, moment
from tests.integration.lane import Lane
from tests.protocol.raw.lines import FOREIGN, OFFSETS, WINDOWS, Line, Records, record_of, shown, window_of

MINUTES = 30  # between the two windows, so that the second one's records close the first
BASE = 8  # a record's amount is this to the power of its place, so that a sum shows how often each is counted
_PLACES: tuple[Line, ...] = (*range(0, 4 * OFFSETS, 2), FOREIGN)  # those of the first epoch, of two Kafka partitions


@dataclass(frozen=True, slots=True)
class Held:
    """`counted` maps each line to how often a window's rows count it. `lost`: what each window's certificate names as
    lost; None if it is not certified, or has expired."""

    raw: frozenset[Line]
    log: frozenset[Line]
    has_file: tuple[bool, ...]
    counted: tuple[dict[Line, int], ...]
    lost: tuple[Records | None, ...]
    is_expired: tuple[bool, ...]
    frontiers: tuple[int, ...]

    @property
    def is_done(self) -> bool:
        """Whether each window with a file or rows is certified, unless its raw has expired."""
        return all(
            self.lost[window] is not None
            or self.is_expired[window]
            or not (self.has_file[window] or self.counted[window])
            for window in WINDOWS
        )


def start_of(window: int) -> datetime:
    return moment(window * MINUTES)


def minute_of(line: Line) -> int:
    return 0 if line == FOREIGN else window_of(line) * MINUTES


def value_of(line: Line) -> bytes:
    """Return the value of that line's record."""
    return event(minute_of(line), amount=amount_of(line))


def amount_of(line: Line) -> int:
    return int(BASE ** _PLACES.index(line))


def line_of(value: bytes | None) -> Line:
    amount = json.loads(value or b"")["amount"]
    return next(line for line in _PLACES if amount_of(line) == amount)


def read_held(lane: Lane, partitions: int) -> Held:
    """Read the topic with so many Kafka partitions, every raw file, the aggregates and the certificates."""
    paths = {f"{lane.layout.raw_root}/{lane.name}/{path}" for path in lane.raw()}
    return Held(
        frozenset(line_of(line.record.value) for _, line in lane.lines()),
        frozenset(line_of(value) for _, value in lane.log().values()),
        tuple(lane.layout.window_file(start_of(window)) in paths for window in WINDOWS),
        _read_counted(lane),
        *_read_certified(lane),
        _read_frontiers(lane, partitions),
    )


def _read_counted(lane: Lane) -> tuple[dict[Line, int], ...]:
    sums = {key[0]: int(str(values[1])) for key, values in lane.aggregates().items()}
    counted = []
    for window in WINDOWS:
        left = sums.get(float(window * MINUTES), 0)
        counts = {line: left // amount_of(line) % BASE for line in _PLACES}
        counted.append({line: count for line, count in counts.items() if count})
    return tuple(counted)


def _read_certified(lane: Lane) -> tuple[tuple[Records | None, ...], tuple[bool, ...]]:
    lost: list[Records | None] = []
    expired: list[bool] = []
    with lane.ledger() as ledger:
        for window in WINDOWS:
            of = {"pipeline": lane.name, "start": start_of(window)}
            gone = """SELECT FROM onceover."window"
                WHERE pipeline = %(pipeline)s AND window_start = %(start)s AND expired_at IS NOT NULL"""
            expired.append(ledger.execute(gone, of).fetchone() is not None)
            row = ledger.execute(
                """
                SELECT c.losses::text FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id)
                WHERE w.pipeline = %(pipeline)s AND w.window_start = %(start)s AND c.version = w.version
                  AND w.expired_at IS NULL AND NOT EXISTS (SELECT FROM onceover.finding f WHERE f.pipeline = w.pipeline
                    AND f.resolved_at IS NULL AND f.window_start = w.window_start)
                """,
                of,
            ).fetchone()
            if row is None:
                lost.append(None)
                continue
            ranges = ledger.execute(
                "SELECT kafka_partition * %s AS first, start_offset, end_offset FROM onceover.accepted_loss "
                "WHERE loss_id <@ %s::int8multirange",
                [OFFSETS, row["losses"]],
            ).fetchall()
            lost.append(tuple(r["first"] + at for r in ranges for at in range(r["start_offset"], r["end_offset"])))
    return tuple(lost), tuple(expired)


def _read_frontiers(lane: Lane, partitions: int) -> tuple[int, ...]:
    with lane.ledger() as ledger:
        rows = ledger.execute(
            "SELECT kafka_partition, frontier FROM onceover.kafka_partition WHERE pipeline = %s", [lane.name]
        ).fetchall()
    found = {row["kafka_partition"]: row["frontier"] for row in rows}
    return tuple(found.get(partition, 0) for partition in range(partitions))


def find_wrong(held: Held, born: tuple[int, ...], records: tuple[int, ...]) -> list[str]:
    """Say what certified windows count, lack or name wrongly, as `right` does of the model."""
    wrong = []
    for window, lost in enumerate(held.lost):
        if lost is None:
            continue
        if FOREIGN in held.counted[window]:
            wrong.append(f"W{window} is certified, and counts a line of another log")
        for line in list_lines(born, records):
            count = held.counted[window].get(line, 0)
            if not _is_right(held, window, lost, line, count):
                where = "raw" if line in held.raw else "Kafka" if line in held.log else "nothing"
                wrong.append(
                    f"W{window} is certified: {shown((line,))}, held by {where}, counts {count} times; {lost=}"
                )
    return wrong


def list_lines(born: tuple[int, ...], records: tuple[int, ...]) -> Iterator[Line]:
    """Yield what was ever to be read, of each Kafka partition with so many records."""
    for partition, (first, count) in enumerate(zip(born, records, strict=True)):
        for offset in range(first, count):
            yield (partition * OFFSETS + offset) * 2


def _is_right(held: Held, window: int, lost: Records, line: Line, count: int) -> bool:
    partition, offset = divmod(record_of(line), OFFSETS)
    is_to_be_read = offset >= held.frontiers[partition]
    if line in held.log and is_to_be_read:
        return count <= (window_of(line) == window)
    if line in held.log or line in held.raw:
        return count == (window_of(line) == window)
    return count == 0 and (is_to_be_read or record_of(line) in lost)
