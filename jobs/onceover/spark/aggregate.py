"""Aggregates: the records of each window, grouped by the contract's keys into its measures."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from onceover.model.contract import Contract
from onceover.model.measures import SKETCH_BYTES, Measure
from onceover.spark.windowing import find_window


def aggregate(contract: Contract) -> Callable[[DataFrame], DataFrame]:
    """Group by `window_ms` (the window's start) and keys, null being a key like any other, into the measures.

    Takes the columns of `interpret`, of the records that count, and `window_ms` (made from `event_ms` if absent).
    Returns `window_ms` and the contract's own names, in its order.
    """
    keys = [F.col(f"k_{key.name}").alias(key.name) for key in contract.keys]
    measures = [_aggregate_measure(measure).alias(measure.name) for measure in contract.measures]

    def group(records: DataFrame) -> DataFrame:
        if "window_ms" not in records.columns:
            records = records.withColumn("window_ms", find_window(contract.windowing))
        return records.groupBy("window_ms", *keys).agg(*measures)

    return group


def _aggregate_measure(measure: Measure) -> Column:
    column = F.col(f"m_{measure.name}")
    if measure.stored == "count":
        return F.sum(column.cast("bigint"))
    if measure.stored == "bit_or":
        bitmap = F.bitmap_construct_agg(column.cast("bigint"))  # of nulls alone, no bit is set
        return F.when(F.count(column) > 0, F.substring(bitmap, 1, SKETCH_BYTES))
    return {"sum": F.sum, "min": F.min, "max": F.max}[measure.stored](column)
