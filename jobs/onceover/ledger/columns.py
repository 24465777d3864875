"""Digests, offset ranges and readings as the columns of every table that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from onceover.model.digest import Digest
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange


def digest_columns(digest: Digest) -> dict[str, int]:
    """Return the digest as columns."""
    return dict(zip(("records", "high1", "low1", "high2", "low2"), digest.as_tuple(), strict=True))


def digest_arrays(digests: Iterable[Digest]) -> tuple[list[int], ...]:
    """Return the digests as one array a column, for `unnest`."""
    rows = [digest.as_tuple() for digest in digests]
    return tuple([row[n] for row in rows] for n in range(len(digest_columns(Digest()))))


def read_digest(row: Mapping[str, object], prefix: str = "") -> Digest:
    """Return the digest in a row of the ledger."""
    values = (row[prefix + name] for name in ("records", "high1", "low1", "high2", "low2"))
    return Digest(*[value if isinstance(value, int) else int(str(value or 0)) for value in values])


def count_columns(count: Digest | None) -> dict[str, int | None]:
    """Return a control row's count as columns, all NULL for an unknown count."""
    return {**digest_columns(count)} if count is not None else dict.fromkeys(digest_columns(Digest()))


def read_count(row: Mapping[str, object], prefix: str = "") -> Digest | None:
    """Return the count in a control row, None if it is unknown."""
    return None if row[prefix + "records"] is None else read_digest(row, prefix)


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
