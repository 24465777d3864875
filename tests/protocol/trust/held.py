"""What raw and Kafka hold, and what the aggregates count, of a replayed pipeline: read from themselves.

The ledger says only which windows are certified, what their certificates state as lost or decided, and how far it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition
from tests.integration.lane import NOON_MS, Lane
from tests.protocol.trust.state import FOREIGN, WINDOWS, Line, Lines, Offsets, window_of

from onceover.config.endpoints import address
from onceover.model.window import from_ms

MINUTES = 30  # between the two windows, so that the second one's records close the first
BASE = 8  # a record's amount is this to the power of its line, so that a sum shows how often each is counted
_PLACES: tuple[Line, ...] = (*range(BASE - 2), FOREIGN)


@dataclass(frozen=True, slots=True)
class Held:
    """`counted` maps each line to how often a window's rows count it."""

    files: tuple[Lines, ...]
    log: Lines
    counted: tuple[dict[Line, int], ...]
    losses: tuple[Offsets | None, ...]  # that each window's certificate states; None: not certified, or expired
    is_expired: tuple[bool, ...]  # retention took its raw, which counts as held
    frontier: int
    reach: int

    @property
    def is_certified(self) -> tuple[bool, ...]:
        return tuple(losses is not None for losses in self.losses)

    def lines_at(self, offset: int) -> Lines:
        held = {line for file in self.files for line in file} | set(self.log)
        return tuple(line for line in (offset * 2, offset * 2 + 1) if line in held)


def minute_of(line: Line) -> int:
    """Return the minute of that line's event: in its window, and another one for the second content of its offset."""
    return window_of(line) * MINUTES + (line & 1)


def amount_of(line: Line) -> int:
    return int(BASE ** _PLACES.index(line))


def line_of(amount: int) -> Line:
    return next(line for line in _PLACES if amount_of(line) == amount)


def read_held(lane: Lane, amounts: dict[bytes, int]) -> Held:
    """Read the topic, every raw file, the aggregates and the certificates. `amounts` is what was produced."""
    files: list[list[Line]] = [[] for _ in WINDOWS]
    for _, line in lane.lines():
        line_number = line_of(amounts[line.record.value or b""])
        files[window_of(line_number)].append(line_number)
    log = tuple(line_of(amounts[value]) for value in _read_log(lane))
    return Held(tuple(map(tuple, files)), log, _read_counted(lane), *_read_certified(lane), *_read_progress(lane))


def _read_log(lane: Lane) -> list[bytes]:
    """Read the topic from its start to its end, by a client of its own."""
    consumer = Consumer({"bootstrap.servers": address("kafka"), "group.id": "held", "enable.auto.commit": False})
    try:
        start, end = consumer.get_watermark_offsets(TopicPartition(lane.topic, 0), timeout=30)
        consumer.assign([TopicPartition(lane.topic, 0, start)])
        values = []
        for _ in range(start, end):
            message = consumer.poll(30)
            assert message is not None, "the broker has gone quiet"
            assert message.error() is None
            values.append(message.value() or b"")
        return values
    finally:
        consumer.close()


def _read_counted(lane: Lane) -> tuple[dict[Line, int], ...]:
    sums = {key[0]: int(str(values[1])) for key, values in lane.aggregates().items()}
    counted = []
    for window in WINDOWS:
        left = sums.get(float(window * MINUTES), 0)
        counts = {line: left // amount_of(line) % BASE for line in _PLACES}
        counted.append({line: count for line, count in counts.items() if count})
    return tuple(counted)


def _read_certified(lane: Lane) -> tuple[tuple[Offsets | None, ...], tuple[bool, ...]]:
    found: list[Offsets | None] = []
    expired: list[bool] = []
    with lane.ledger() as ledger:
        for window in WINDOWS:
            start = from_ms(NOON_MS + window * MINUTES * 60_000)
            gone = 'SELECT FROM onceover."window" WHERE pipeline = %s AND window_start = %s AND expired_at IS NOT NULL'
            expired.append(ledger.execute(gone, [lane.name, start]).fetchone() is not None)
            row = ledger.execute(
                """
                SELECT c.losses::text FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id)
                WHERE w.pipeline = %(pipeline)s AND w.window_start = %(start)s AND c.version = w.version
                  AND w.expired_at IS NULL AND NOT EXISTS (SELECT FROM onceover.finding f WHERE f.pipeline = w.pipeline
                    AND f.resolved_at IS NULL AND (f.window_start = w.window_start OR f.kind = 'truncated log'))
                """,
                {"pipeline": lane.name, "start": start},
            ).fetchone()
            if row is None:
                found.append(None)
                continue
            ranges = ledger.execute(
                "SELECT start_offset, end_offset FROM onceover.accepted_loss WHERE loss_id <@ %s::int8multirange "
                "AND kind <> 'overwritten'",
                [row["losses"]],
            ).fetchall()
            found.append(tuple(at for r in ranges for at in range(r["start_offset"], r["end_offset"])))
    return tuple(found), tuple(expired)


def _read_progress(lane: Lane) -> tuple[int, int]:
    """Return frontier and reach."""
    with lane.ledger() as ledger:
        row = ledger.execute(
            "SELECT frontier, reach FROM onceover.kafka_partition WHERE pipeline = %s", [lane.name]
        ).fetchone()
    return (row["frontier"], row["reach"]) if row else (0, 0)


def find_wrong(held: Held, born: int, decided: dict[int, Line], records: int) -> list[str]:
    """Say what certified windows count, lack or state wrongly, as `right` does of the model."""
    wrong = []
    for window, losses in enumerate(held.losses):
        if losses is not None and FOREIGN in held.counted[window]:
            wrong.append(f"W{window} is certified, and counts a line of another log")
        for offset in range(born, records) if losses is not None else ():
            counts = {line: held.counted[window].get(line, 0) for line in (offset * 2, offset * 2 + 1)}
            lines = held.lines_at(offset)
            if offset >= held.frontier and any(line >> 1 == offset for line in held.log):
                ok = sum(counts.values()) <= 1
            elif not lines:
                ok = not any(counts.values()) and (offset >= held.frontier or offset in (losses or ()))
            elif len(lines) == 2 and offset not in decided:
                of = {window_of(line) for line in lines}
                ok = window not in of or not all(held.is_certified[other] for other in of)
            else:
                chosen = decided[offset] if len(lines) == 2 else lines[0]
                expected = {line: int(line == chosen and window_of(line) == window) for line in counts}
                ok = counts == expected and offset not in (losses or ())
            if not ok:
                wrong.append(f"W{window} is certified: offset {offset} is held as {lines}, counted {counts}, {losses=}")
    return wrong
