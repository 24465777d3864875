"""Landings with the evidence of a proof: their digests, their batches' offset ranges, and their releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onceover.ledger.database import Connection
from onceover.ledger.digest_columns import read_digest
from onceover.ledger.releases import read_releases
from onceover.model.claim import ClaimedLanding
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange


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
    released = read_releases(connection, {row["batch_id"] for row in rows if row["start_offset"] is None})
    parts: dict[int, list[tuple[OffsetRange, Digest]]] = {}
    for row in rows:
        source = KafkaPartition(row["generation"], row["kafka_partition"])
        if row["start_offset"] is None:
            ranges = [piece for piece in released[row["batch_id"]].ranges if piece.source == source]
            offsets = OffsetRange(source, min(r.start for r in ranges), max(r.end for r in ranges))
        else:
            offsets = OffsetRange(source, row["start_offset"], row["end_offset"])
        parts.setdefault(row["landing_id"], []).append((offsets, read_digest(row)))
    batch = {row["landing_id"]: row["batch_id"] for row in rows}
    return {
        landing_id: ClaimedLanding(landing_id, tuple(pieces), released.get(batch[landing_id]))
        for landing_id, pieces in parts.items()
    }
