"""Offset ranges as the columns of every table that holds one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

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
