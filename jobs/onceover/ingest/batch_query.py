"""The one Spark job of a batch, as a query that is planned once and run for many batches.

records and shards' ends -> contract's SQL, once -> pieces: framed lines of one window, their sums, their grouped rows
-> moved to the task of their window -> appended -> a row a window and a shard
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BooleanType, DataType, IntegralType, LongType, StringType

from onceover.context import PipelineContext
from onceover.ingest.framing import MAX_WINDOWS, PIECE, PLACED, SHARD_END, Framing, frame_pieces
from onceover.ingest.landing import RESULT, Appending
from onceover.kafka.shard_read import END_OFFSET
from onceover.ledger.catalog import RegisteredPipeline
from onceover.lines.contract_names import name_contract
from onceover.model.window import to_ms
from onceover.raw.schema_files import SchemaFiles
from onceover.spark.contract_check import analyze_contract
from onceover.spark.interpret import interpret
from onceover.spark.line_columns import make_grouping

_SAME_TEXT: Final = (StringType, BooleanType, IntegralType)  # Arrow writes these as Spark does


class BatchQuery:
    """The query over the `records` of batches of one generation and one contract; `run` may be called for each.

    `records` are as `read_shards` returns them, with a row for each shard's end, and are read by so many `tasks`:
    one appends what it reads, several move each window to a task of its own. With `only`, that window's records are
    appended and no others. `released` records come from quarantine, and their lines say so.
    """

    def __init__(
        self,
        spark: SparkSession,
        context: PipelineContext,
        registered: RegisteredPipeline,
        generation: str,
        records: DataFrame,
        tasks: int,
        only: datetime | None,
        schemas: SchemaFiles,
        *,
        released: bool = False,
    ) -> None:
        self.generation, self.quarantine_day = generation, read_day()
        self.contract, self.windowing = registered.contract, registered.windowing
        types = analyze_contract(spark, registered.contract).types
        grouping = make_grouping(registered.contract, types, {"window_ms": LongType()})
        texts = {name: name if isinstance(kind, _SAME_TEXT) else f"t_{name}" for name, kind in types.items()}
        name = name_contract(registered.contract, registered.contract_version, released=released)
        framing = Framing(name, self.windowing.pieces, texts, grouping, max(1, MAX_WINDOWS // tasks))
        placed = self._place(
            records.transform(interpret(registered.contract, registered.list_poison(), schemas)), types, texts, only
        )
        self._pieces = placed.mapInArrow(partial(frame_pieces, framing=framing), from_arrow_schema(PIECE))
        self._appending = Appending(context.raw_address, context.layout, self.quarantine_day, grouping)
        self._appended = self._append(self._pieces) if tasks == 1 else None
        self._windows = 2 * spark.sparkContext.defaultParallelism

    def run(self) -> list[Any]:
        """Append once, and return a row of RESULT for each window and each shard.

        A query without a shuffle runs again as it is. One with a shuffle would take what the last run shuffled, so it
        is planned again.
        """
        appended = self._appended
        if appended is None:
            appended = self._append(self._pieces.repartition(self._windows, "window_ms"))
        return appended.collect()

    def _append(self, pieces: DataFrame) -> DataFrame:
        in_order = pieces.sortWithinPartitions("window_ms", "place")
        return in_order.mapInArrow(self._appending.append, from_arrow_schema(RESULT))

    def _place(
        self, records: DataFrame, types: Mapping[str, DataType], texts: Mapping[str, str], only: datetime | None
    ) -> DataFrame:
        """Return what `frame_pieces` takes."""
        is_end = F.col("offset") == END_OFFSET
        if only is not None:
            start = to_ms(only)
            end = to_ms(self.windowing.window_at(only).end)
            records = records.where(is_end | ((F.col("event_ms") >= start) & (F.col("event_ms") < end)))
        records = records.withColumn("event_ms", F.when(is_end, SHARD_END).otherwise(F.col("event_ms")))
        written = [F.col(name).cast("string").alias(text) for name, text in texts.items() if text != name]
        return records.select(*PLACED, *types, *written)


def read_day() -> date:
    """Return the day whose quarantine file records go to now."""
    return datetime.now(UTC).date()
