"""Where the landings that may hold some offsets lie in raw, whatever their window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

from onceover.ledger.columns import read_digest
from onceover.ledger.database import Connection
from onceover.model.digest import Digest
from onceover.model.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class LandedBytes:
    """The bytes `[start, end)` of a file to which a batch appended, with its range of one Kafka partition and the
    digest of its records there.

    `is_there` is false once the file has expired, or a compacted file replaced it.
    """

    landing_id: int
    offsets: OffsetRange
    digest: Digest
    window_start: datetime | None
    quarantine_day: date | None
    start: int
    end: int
    is_there: bool


@dataclass(frozen=True, slots=True)
class Covering:
    """The landings whose batches read some offsets, and the exact IDs among these that others landed."""

    landed: tuple[LandedBytes, ...]
    exact: tuple[OffsetRange, ...]


def list_covering(connection: Connection, pipeline: str, ranges: Iterable[OffsetRange]) -> Covering:
    """Return the landings whose offset ranges or exact IDs overlap one of these ranges, releases included."""
    landed: dict[tuple[int, OffsetRange], LandedBytes] = {}
    exact: set[OffsetRange] = set()
    for wanted in ranges:
        for row in connection.execute(
            _COVERING,
            {
                "pipeline": pipeline,
                "generation": wanted.source.generation,
                "partition": wanted.source.kafka_partition,
                "start": wanted.start,
                "end": wanted.end,
            },
        ):
            offsets = OffsetRange(wanted.source, row["start_offset"], row["end_offset"])
            if row["is_exact"]:
                exact.add(offsets)
            else:
                landed[row["landing_id"], offsets] = LandedBytes(
                    row["landing_id"],
                    offsets,
                    read_digest(row),
                    row["window_start"],
                    row["quarantine_day"],
                    row["byte_start"],
                    row["byte_end"],
                    row["is_there"],
                )
    return Covering(tuple(landed.values()), tuple(sorted(exact)))


_COVERING = """
SELECT l.landing_id, l.window_start, l.quarantine_day, l.byte_start, l.byte_end, p.records, p.high1, p.low1, p.high2,
  p.low2, r.*,
  coalesce(w.expired_at IS NULL AND coalesce(l.landing_id > w.removed_to_landing, true), l.quarantine_day IS NOT NULL)
    AS is_there
FROM (
  SELECT batch_id, start_offset, end_offset, false AS is_exact FROM onceover.batch_range
  WHERE generation = %(generation)s AND kafka_partition = %(partition)s AND end_offset > %(start)s
    AND start_offset < %(end)s
  UNION ALL
  SELECT batch_id, start_offset, end_offset, true FROM onceover.released
  WHERE generation = %(generation)s AND kafka_partition = %(partition)s AND end_offset > %(start)s
    AND start_offset < %(end)s
) r JOIN onceover.batch b USING (batch_id) JOIN onceover.landing l USING (batch_id)
JOIN onceover.landing_part p ON p.landing_id = l.landing_id AND p.generation = %(generation)s
  AND p.kafka_partition = %(partition)s
LEFT JOIN onceover."window" w ON w.pipeline = l.pipeline AND w.window_start = l.window_start
WHERE b.pipeline = %(pipeline)s AND b.state = 'landed'
"""
