"""Landings with the evidence of a proof (digests, offset ranges, releases), and counts of what they landed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from onceover.ledger.database import Connection
from onceover.ledger.digest_columns import read_digest
from onceover.ledger.exact_ranges import read_exact_ranges
from onceover.ledger.releases import read_releases
from onceover.model.claim import ClaimedLanding
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce


def read_landings(connection: Connection, landing_ids: Iterable[int]) -> Mapping[int, ClaimedLanding]:
    """Return these landings by ID, in ascending order."""
    rows = connection.execute(
        """
        SELECT l.landing_id, l.batch_id, p.generation, p.kafka_partition, r.start_offset, r.end_offset, p.records,
          p.high1, p.low1, p.high2, p.low2
        FROM onceover.landing l JOIN onceover.landing_part p USING (landing_id)
        LEFT JOIN onceover.batch_range r ON r.batch_id = l.batch_id AND r.generation = p.generation
          AND r.kafka_partition = p.kafka_partition
        WHERE l.landing_id = ANY(%s) ORDER BY l.landing_id
        """,
        [list(landing_ids)],
    ).fetchall()
    rangeless = {row["batch_id"] for row in rows if row["start_offset"] is None}
    released, exact = read_releases(connection, rangeless), read_exact_ranges(connection, rangeless)
    parts: dict[int, list[tuple[OffsetRange, Digest]]] = {}
    for row in rows:
        source = KafkaPartition(row["generation"], row["kafka_partition"])
        if row["start_offset"] is None:
            batch_id = row["batch_id"]
            of_batch = released[batch_id].ranges if batch_id in released else exact[batch_id]
            ranges = [piece for piece in of_batch if piece.source == source]
            offsets = OffsetRange(source, min(r.start for r in ranges), max(r.end for r in ranges))
        else:
            offsets = OffsetRange(source, row["start_offset"], row["end_offset"])
        parts.setdefault(row["landing_id"], []).append((offsets, read_digest(row)))
    batch = {row["landing_id"]: row["batch_id"] for row in rows}
    return {
        landing_id: ClaimedLanding(
            landing_id, tuple(pieces), released.get(batch[landing_id]), exact.get(batch[landing_id], ())
        )
        for landing_id, pieces in parts.items()
    }


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
        SELECT l.window_start, l.landing_id, p.generation, p.kafka_partition, r.start_offset, r.end_offset, p.records
        FROM onceover.landing l JOIN onceover.landing_part p USING (landing_id)
        LEFT JOIN onceover.batch_range r ON r.batch_id = l.batch_id AND r.generation = p.generation
          AND r.kafka_partition = p.kafka_partition
        WHERE l.pipeline = %s AND l.window_start = ANY(%s) ORDER BY l.window_start, r.end_offset - r.start_offset DESC
        """,
        [pipeline, list(starts)],
    )
    held: dict[datetime, tuple[OffsetRange, ...]] = {}
    total: dict[datetime, int | None] = {}
    for row in rows:
        start = row["window_start"]
        so_far = total.setdefault(start, 0)
        if row["start_offset"] is None:  # released or adopted: IDs that no other landing counts
            total[start] = None if so_far is None else so_far + row["records"]
            continue
        source = KafkaPartition(row["generation"], row["kafka_partition"])
        offsets = OffsetRange(source, row["start_offset"], row["end_offset"])
        earlier = held.get(start, ())
        within = any(k.source == source and k.start <= offsets.start and offsets.end <= k.end for k in earlier)
        if not within:
            partly = any(offsets.overlaps(k) for k in earlier)
            total[start] = None if so_far is None or partly else so_far + row["records"]
        held[start] = coalesce((*earlier, offsets))
    return total
