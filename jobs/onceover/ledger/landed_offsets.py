"""Which offsets have landed, from frontiers, the batches around them and accepted losses; and where their landings lie
in raw, whatever their window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from onceover.ledger.columns import read_digest, read_range
from onceover.ledger.database import Connection
from onceover.ledger.frontiers import read_progress, read_reach
from onceover.ledger.log_limits import list_unreadable
from onceover.model.batch import RangeRead
from onceover.model.digest import Digest
from onceover.model.offsets import OffsetRange, coalesce, intersect

_ACCOUNTED = """
SELECT generation, kafka_partition, lower(piece) AS start_offset, upper(piece) AS end_offset FROM (
  SELECT generation, kafka_partition, unnest(
    int8multirange(int8range(origin, frontier)) + coalesce(beyond, '{}') + coalesce(below, '{}')
    - coalesce(lost, '{}') + coalesce(relanded, '{}') + coalesce(released, '{}')) AS piece
  FROM onceover.kafka_partition k, LATERAL (
    SELECT range_agg(int8range(a.start_offset, a.end_offset)) AS lost,
      range_agg((SELECT range_agg(int8range(r.start_offset, {end})) FROM {ranges}
        AND r.start_offset < a.end_offset AND r.end_offset > a.start_offset AND r.records > 0)) AS relanded,
      range_agg((SELECT range_agg(int8range(r.start_offset, r.end_offset)) FROM {released}
        AND r.start_offset < a.end_offset AND r.end_offset > a.start_offset)) AS released
    FROM onceover.accepted_loss a WHERE a.pipeline = k.pipeline AND a.generation = k.generation
      AND a.kafka_partition = k.kafka_partition AND a.relanded_at IS NULL) losses, LATERAL (
    SELECT
      (SELECT range_agg(int8range(r.start_offset, {end})) FROM {ranges} AND r.end_offset > k.frontier) AS beyond,
      (SELECT range_agg(int8range(r.start_offset, {end})) FROM {ranges} AND r.start_offset < k.origin) AS below
  ) others WHERE k.pipeline = %(pipeline)s) pieces
ORDER BY 1, 2, 3
"""
# The batch is looked up by its key, one range after the other: they are few, and the planner cannot know it.
_LANDED = """ r WHERE r.generation = k.generation AND r.kafka_partition = k.kafka_partition
  AND (SELECT b.pipeline = k.pipeline AND b.state = 'landed' FROM onceover.batch b WHERE b.batch_id = r.batch_id)"""
_ACCOUNTED = _ACCOUNTED.replace("{ranges}", f"onceover.batch_range{_LANDED}").replace(
    "{released}", f"onceover.released{_LANDED}"
)
_EVER = _ACCOUNTED.replace("{end}", "r.end_offset")
_NOT_PAST = _ACCOUNTED.replace("{end}", "least(r.end_offset, r.past_from)")


def read_accounted(connection: Connection, pipeline: str) -> Iterable[OffsetRange]:
    """Return the offset ranges of all landed batches, joined where they touch, without accepted losses of which no
    batch read a record, and none was released.

    Only landed batches and accepted losses lie between origin and frontier. So the query reads only the batches beyond
    the frontier, below the origin and across losses, not a year of them.
    """
    return list(map(read_range, connection.execute(_EVER, {"pipeline": pipeline})))


def read_settled(connection: Connection, pipeline: str) -> tuple[OffsetRange, ...]:
    """Return the offsets that landed, and those whose loss a person accepted: nothing reads them again."""
    rows = connection.execute(
        "SELECT generation, kafka_partition, start_offset, end_offset FROM onceover.accepted_loss "
        "WHERE pipeline = %s AND relanded_at IS NULL",
        [pipeline],
    )
    return coalesce((*read_accounted(connection, pipeline), *map(read_range, rows)))


def list_landed(connection: Connection, pipeline: str, ranges: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Return which of these offsets have landed, but for what is past since the log was cut. For ranges beyond the
    reach nothing, at the price of one row a Kafka partition."""
    reach = read_reach(connection, pipeline)
    below = [piece for piece in ranges if piece.start < reach.get(piece.source, 0)]
    if not below:
        return ()
    return intersect(map(read_range, connection.execute(_NOT_PAST, {"pipeline": pipeline})), below)


def read_landed_bounds(
    connection: Connection, pipeline: str, generation: str, at: Mapping[int, int]
) -> dict[int, tuple[int, ...]]:
    """Return where landed ranges and unreadable ones begin and end, by Kafka partition, if reading at `at` would replay
    some of them; for reading that continues at the reach nothing, at the price of one row a Kafka partition."""
    progress = read_progress(connection, pipeline, generation)
    if not any(at.get(source.kafka_partition, reach) < reach for source, (_, reach) in progress.items()):
        return {}
    bounds: dict[int, set[int]] = {}
    for piece in (*read_accounted(connection, pipeline), *list_unreadable(connection, pipeline, generation)):
        if piece.source.generation == generation:
            bounds.setdefault(piece.source.kafka_partition, set()).update((piece.start, piece.end))
    return {p: tuple(sorted(offsets)) for p, offsets in bounds.items()}


@dataclass(frozen=True, slots=True)
class LandedBytes:
    """The bytes `[start, end)` of a window's file that a batch appended, with its range of one Kafka partition and the
    digest of its records there.

    `is_there` is false once the file has expired, or a compacted file replaced it.
    """

    landing_id: int
    offsets: OffsetRange
    digest: Digest
    window_start: datetime
    start: int
    end: int
    is_there: bool


@dataclass(frozen=True, slots=True)
class Covering:
    """The landings in windows whose batches read some offsets, and the exact IDs among these that others landed."""

    landed: tuple[LandedBytes, ...]
    exact: tuple[OffsetRange, ...]


def list_covering(connection: Connection, pipeline: str, ranges: Iterable[OffsetRange]) -> Covering:
    """Return the landings in windows whose offset ranges or exact IDs overlap one of these ranges."""
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
                    row["byte_start"],
                    row["byte_end"],
                    row["is_there"],
                )
    return Covering(tuple(landed.values()), tuple(sorted(exact)))


_COVERING = """
SELECT l.landing_id, l.window_start, l.byte_start, l.byte_end, p.records, p.high1, p.low1, p.high2, p.low2, r.*,
  w.expired_at IS NULL AND coalesce(l.landing_id > w.removed_to_landing, true) AS is_there
FROM (
  SELECT batch_id, start_offset, end_offset, false AS is_exact FROM onceover.batch_range
  WHERE generation = %(generation)s AND kafka_partition = %(partition)s AND end_offset > %(start)s
    AND start_offset < %(end)s
  UNION ALL
  SELECT batch_id, start_offset, end_offset, true FROM onceover.released
  WHERE generation = %(generation)s AND kafka_partition = %(partition)s AND end_offset > %(start)s
    AND start_offset < %(end)s
) r CROSS JOIN LATERAL ( -- OFFSET 0: looked up by the batch's key; else the planner reads every landing
  SELECT l.* FROM onceover.batch b JOIN onceover.landing l USING (batch_id)
  WHERE b.batch_id = r.batch_id AND b.pipeline = %(pipeline)s AND b.state = 'landed' OFFSET 0) l
CROSS JOIN LATERAL (
  SELECT * FROM onceover.landing_part a WHERE a.landing_id = l.landing_id AND a.generation = %(generation)s
    AND a.kafka_partition = %(partition)s OFFSET 0) p
JOIN onceover."window" w ON w.pipeline = l.pipeline AND w.window_start = l.window_start
"""


def insert_ranges(connection: Connection, batch_id: int, read: Iterable[RangeRead]) -> None:
    """Record the ranges that a batch has read, with what was read of each."""
    with connection.cursor().copy(
        "COPY onceover.batch_range (batch_id, generation, kafka_partition, start_offset, end_offset, max_event_time, "
        "oldest_record, leader_epochs, records, high1, low1, high2, low2) FROM STDIN"
    ) as copy:
        for piece in read:
            of = piece.offsets
            copy.write_row(
                (batch_id, of.source.generation, of.source.kafka_partition, of.start, of.end, piece.max_event_time,
                 piece.oldest_record, Jsonb(piece.leader_epochs), *piece.digest.as_tuple())
            )  # fmt: skip
