"""Offset ranges as the columns of every table that holds one, and readings in a column of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from onceover.model.log_history import EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange

GIVEN: Final = """
  unnest(%(generations)s::text[], %(partitions)s::integer[], %(starts)s::bigint[], %(ends)s::bigint[])
    AS g (generation, kafka_partition, start_offset, end_offset)"""
"""The rows g of the ranges that `range_arrays` gives."""


def range_arrays(ranges: Iterable[OffsetRange]) -> dict[str, list[object]]:
    """Return the ranges as one array a column, for GIVEN."""
    listed = list(ranges)
    return {
        "generations": [each.source.generation for each in listed],
        "partitions": [each.source.kafka_partition for each in listed],
        "starts": [each.start for each in listed],
        "ends": [each.end for each in listed],
    }


def read_range(row: Mapping[str, Any]) -> OffsetRange:
    """Return the offset range in a row of the ledger."""
    return OffsetRange(
        KafkaPartition(row["generation"], row["kafka_partition"]), row["start_offset"], row["end_offset"]
    )


def spans_as_json(spans: Iterable[EpochSpan]) -> list[list[str | int | None]]:
    """Return readings as a certificate keeps them: [generation, kafka_partition, start, end, leader epoch]."""
    return [
        [each.offsets.source.generation, each.offsets.source.kafka_partition, each.offsets.start, each.offsets.end,
         each.leader_epoch]
        for each in spans
    ]  # fmt: skip


def parse_spans(spans: Iterable[tuple[str, int, int, int, int | None]]) -> tuple[EpochSpan, ...]:
    """Return the readings that `spans_as_json` gave."""
    return tuple(EpochSpan(OffsetRange(KafkaPartition(g, p), a, b), epoch) for g, p, a, b, epoch in spans)
