"""Landings with the evidence of a proof (digests, offset ranges, releases), and counts of what landed, was quarantined,
or was skipped by a measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache

from psycopg import sql

from onceover.ledger.columns import read_digest
from onceover.ledger.database import Connection
from onceover.ledger.releases import read_releases
from onceover.model.claim import ClaimedLanding
from onceover.model.digest import Digest
from onceover.model.log_history import NO_EPOCH, EpochSpan, cut_at_epochs
from onceover.model.measures import SKIPPED
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce


def read_landings(connection: Connection, landing_ids: Iterable[int]) -> Mapping[int, ClaimedLanding]:
    """Return these landings by ID, in ascending order."""
    rows = connection.execute(
        """
        SELECT l.landing_id, l.batch_id, p.generation, p.kafka_partition, r.start_offset, r.end_offset,
          r.records AS read, r.leader_epochs,
          p.records, p.high1, p.low1, p.high2, p.low2
        -- OFFSET 0: looked up by their keys, one landing after the other; else the planner reads both tables whole.
        FROM onceover.landing l CROSS JOIN LATERAL (
          SELECT * FROM onceover.landing_part WHERE landing_id = l.landing_id OFFSET 0) p
        LEFT JOIN LATERAL (
          SELECT start_offset, end_offset, records, leader_epochs FROM onceover.batch_range r
          WHERE r.batch_id = l.batch_id AND r.generation = p.generation AND r.kafka_partition = p.kafka_partition
          OFFSET 0) r ON true
        WHERE l.landing_id = ANY(%s) ORDER BY l.landing_id
        """,
        [list(landing_ids)],
    ).fetchall()
    rangeless = {row["batch_id"] for row in rows if row["start_offset"] is None}
    released = read_releases(connection, rangeless)
    parts: dict[int, dict[KafkaPartition, tuple[list[OffsetRange], Digest]]] = {}
    spans: dict[int, list[EpochSpan]] = {}
    to_source = cache(KafkaPartition)
    for row in rows:
        source, batch_id = to_source(row["generation"], row["kafka_partition"]), row["batch_id"]
        ranges, _ = parts.setdefault(row["landing_id"], {}).setdefault(source, ([], read_digest(row)))
        if row["start_offset"] is None:
            ranges += [piece for piece in released[batch_id].ranges if piece.source == source]
        else:
            ranges.append(OffsetRange(source, row["start_offset"], row["end_offset"]))
            epochs = row["leader_epochs"] if row["read"] else [(NO_EPOCH, row["start_offset"])]
            spans.setdefault(row["landing_id"], []).extend(cut_at_epochs(ranges[-1], epochs))
    batch = {row["landing_id"]: row["batch_id"] for row in rows}
    return {
        landing_id: ClaimedLanding(
            landing_id,
            tuple((_span(ranges), digest) for ranges, digest in of_source.values()),
            release := released.get(batch[landing_id]),
            () if release else _list_exact(r for r, _ in of_source.values()),
            tuple(spans.get(landing_id, ())),
        )
        for landing_id, of_source in parts.items()
    }


def _span(ranges: Sequence[OffsetRange]) -> OffsetRange:
    if len(ranges) == 1:
        return ranges[0]
    return OffsetRange(ranges[0].source, min(r.start for r in ranges), max(r.end for r in ranges))


def _list_exact(several: Iterable[Sequence[OffsetRange]]) -> tuple[OffsetRange, ...]:
    """Return a landing's ranges if its batch has several of some Kafka partition, as one of a rebuild, else none: its
    parts have them."""
    listed = list(several)
    return tuple(sorted(r for ranges in listed for r in ranges)) if any(len(each) > 1 for each in listed) else ()


def count_landed_lines(connection: Connection, pipeline: str, starts: Sequence[datetime]) -> dict[datetime, int]:
    """Count the lines that landings put into each window's file."""
    rows = connection.execute(
        "SELECT window_start, sum(records)::bigint AS lines FROM onceover.landing "
        "WHERE pipeline = %s AND window_start = ANY(%s) GROUP BY 1",
        [pipeline, list(starts)],
    )
    return {row["window_start"]: row["lines"] for row in rows}


def count_distinct_records(
    connection: Connection, pipeline: str, starts: Sequence[datetime]
) -> dict[datetime, int | None]:
    """Count the distinct records in each window's landings, as far as their offset ranges show: a landing whose ranges
    lie within earlier ones adds nothing; one that overlaps them only in part makes the count unknown (None)."""
    rows = connection.execute(
        """
        SELECT l.window_start, p.generation, p.kafka_partition, p.records,
          array_agg(ARRAY[r.start_offset, r.end_offset]) FILTER (WHERE r.start_offset IS NOT NULL) AS ranges
        FROM onceover.landing l JOIN onceover.landing_part p USING (landing_id)
        LEFT JOIN onceover.batch_range r ON r.batch_id = l.batch_id AND r.generation = p.generation
          AND r.kafka_partition = p.kafka_partition
        WHERE l.pipeline = %s AND l.window_start = ANY(%s)
        GROUP BY l.landing_id, p.landing_id, p.generation, p.kafka_partition
        ORDER BY l.window_start, sum(r.end_offset - r.start_offset) DESC
        """,
        [pipeline, list(starts)],
    )
    held: dict[datetime, tuple[OffsetRange, ...]] = {}
    total: dict[datetime, int | None] = {}
    for row in rows:
        start = row["window_start"]
        so_far = total.setdefault(start, 0)
        if row["ranges"] is None:  # released: IDs that no other landing counts
            total[start] = None if so_far is None else so_far + row["records"]
            continue
        source = KafkaPartition(row["generation"], row["kafka_partition"])
        landed, earlier = [OffsetRange(source, first, end) for first, end in row["ranges"]], held.get(start, ())
        within = all(any(k.source == source and k.start <= r.start and r.end <= k.end for k in earlier) for r in landed)
        if not within:
            partly = any(r.overlaps(k) for r in landed for k in earlier)
            total[start] = None if so_far is None or partly else so_far + row["records"]
        held[start] = coalesce((*earlier, *landed))
    return total


def count_quarantined(connection: Connection, pipeline: str) -> int:
    """Count the records that ever landed in quarantine; one that landed twice counts twice."""
    row = connection.execute(
        "SELECT coalesce(sum(records_quarantined), 0)::bigint AS n FROM onceover.kafka_partition WHERE pipeline = %s",
        [pipeline],
    ).fetchone()
    return int(row["n"]) if row else 0


_MEASURES = """
SELECT measure ->> 'name' AS name, measure ->> 'sql' AS of
FROM onceover.contract c JOIN onceover.pipeline p ON p.name = c.pipeline AND p.contract_version = c.version,
  jsonb_array_elements(definition -> 'measures') measure
WHERE pipeline = %s AND measure ->> 'operation' = %s
"""
_LAST_DAY = "window_start > (SELECT max(window_start) - interval '1 day' FROM {table})"


def count_skipped(connection: Connection, pipeline: str, window_start: datetime | None = None) -> dict[str, int]:
    """Return by measure the records that it skipped in that window, or in all windows of the pipeline's last day; none
    for a pipeline whose contract quarantines them."""
    skips = {row["name"]: row["of"] for row in connection.execute(_MEASURES, [pipeline, SKIPPED])}
    if not skips:
        return {}
    table = sql.Identifier("aggregates", pipeline)
    sums = (sql.SQL("coalesce(sum({0}), 0)::bigint AS {0}").format(sql.Identifier(name)) for name in skips)
    where = (
        sql.SQL("window_start = {}").format(window_start) if window_start else sql.SQL(_LAST_DAY).format(table=table)
    )
    query = sql.SQL("SELECT {} FROM {} WHERE {}").format(sql.SQL(", ").join(sums), table, where)
    (row,) = connection.execute(query).fetchall()
    return {measure: row[name] for name, measure in skips.items()}
