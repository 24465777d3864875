"""Offsets looked up in offset ranges, by the hundred thousand: a join that Spark hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from onceover.model.offsets import OffsetRange

_RANGES = "in_generation string, in_kafka_partition int, in_slot bigint, low bigint, high bigint"


def looked_up(ranges: Iterable[tuple[OffsetRange, int]], name: str) -> Callable[[DataFrame], DataFrame]:
    """Adds `name` bigint: the number that belongs to the range which holds the ID, null where none does.

    Takes generation, kafka_partition and offset. The ranges of one Kafka partition must be disjoint. Each is listed
    under every slot of `width` offsets that it touches, so that the join is an equality. With this width there are at
    most six rows a range on average.
    """
    wanted = [(piece, number) for piece, number in ranges if len(piece)]
    if not wanted:
        return lambda records: records.withColumn(name, F.lit(None).cast("bigint"))
    width = max(1, sum(len(piece) for piece, _ in wanted) // (4 * len(wanted)))
    rows = [
        (piece.source.generation, piece.source.kafka_partition, slot, piece.start, piece.end, number)
        for piece, number in wanted
        for slot in range(piece.start // width, (piece.end - 1) // width + 1)
    ]

    def add(records: DataFrame) -> DataFrame:
        known = F.broadcast(records.sparkSession.createDataFrame(rows, f"{_RANGES}, in_number bigint"))
        holds = (
            (F.col("generation") == F.col("in_generation"))
            & (F.col("kafka_partition") == F.col("in_kafka_partition"))
            & (F.expr(f"offset div {width}L") == F.col("in_slot"))
            & (F.col("offset") >= F.col("low"))
            & (F.col("offset") < F.col("high"))
        )
        return records.join(known, holds, "left").select(*records.columns, F.col("in_number").alias(name))

    return add
