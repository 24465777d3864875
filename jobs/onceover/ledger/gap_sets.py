"""Gap sets: the offsets that had not landed when windows were certified, stored once for all that say the same.

An accepted loss in a transactional topic has as many gaps as transactions, and every later certificate rests on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from onceover.errors import TerminalError
from onceover.ledger.database import Connection
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange, span_sources, subtract


def ranges_as_json(ranges: Iterable[OffsetRange]) -> list[list[str | int]]:
    """Return offset ranges as a certificate keeps them: [generation, kafka_partition, start, end]."""
    return [[r.source.generation, r.source.kafka_partition, r.start, r.end] for r in ranges]


def parse_ranges(ranges: Iterable[tuple[str, int, int, int]]) -> tuple[OffsetRange, ...]:
    """Return the offset ranges that `ranges_as_json` gave."""
    return tuple(OffsetRange(KafkaPartition(g, p), a, b) for g, p, a, b in ranges)


def spans_as_json(spans: Iterable[EpochSpan]) -> list[list[str | int | None]]:
    """Return readings as a certificate keeps them: [generation, kafka_partition, start, end, leader epoch]."""
    return [[*ranges_as_json([each.offsets])[0], each.leader_epoch] for each in spans]


def parse_spans(spans: Iterable[tuple[str, int, int, int, int | None]]) -> tuple[EpochSpan, ...]:
    """Return the readings that `spans_as_json` gave."""
    return tuple(EpochSpan(OffsetRange(KafkaPartition(g, p), a, b), epoch) for g, p, a, b, epoch in spans)


def store_gaps(
    connection: Connection, pipeline: str, accounted: Sequence[OffsetRange]
) -> tuple[list[OffsetRange], int | None]:
    """Return the span of each Kafka partition's ranges, and the ID of the gaps between them, None without gaps."""
    spans = span_sources(accounted)
    gaps = json.dumps(ranges_as_json(subtract(spans, accounted)))
    if gaps == "[]":
        return spans, None
    key = {"pipeline": pipeline, "fingerprint": hashlib.sha256(gaps.encode()).hexdigest()}
    known = "SELECT gap_set_id FROM onceover.gap_set WHERE pipeline = %(pipeline)s AND fingerprint = %(fingerprint)s"
    row = connection.execute(known, key).fetchone()
    if row is None:
        row = connection.execute(
            "INSERT INTO onceover.gap_set (pipeline, fingerprint, gaps) "
            "VALUES (%(pipeline)s, %(fingerprint)s, %(gaps)s) "
            "ON CONFLICT (pipeline, fingerprint) DO UPDATE SET fingerprint = excluded.fingerprint RETURNING gap_set_id",
            {**key, "gaps": gaps},
        ).fetchone()
    if row is None:  # without its gaps a certificate would state more than had landed
        raise TerminalError(f"the gaps between the landed offsets of {pipeline} were not stored; nothing was certified")
    return spans, int(row["gap_set_id"])
