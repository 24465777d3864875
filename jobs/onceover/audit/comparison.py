"""Comparison of what Kafka's log and raw hold, window by window, and with the offsets that the ledger accounts for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from onceover.audit.result import Difference, HeldRecords, WindowAudit
from onceover.model.contract import Contract
from onceover.model.digest import HALVES, Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.record import ID_COLUMNS, encode_id
from onceover.model.window import from_ms
from onceover.spark.aggregate import aggregate
from onceover.spark.range_join import looked_up
from onceover.spark.raw_lines import QUARANTINE

MAX_IDS = 20


@dataclass(frozen=True, slots=True)
class Bounds:
    """The offsets to judge by, each as disjoint ranges: those that were read from the log and are `in_log` still, those
    that ingest is still `to_read`, those `before_origin` (where reading began), those that landings `accounted` for,
    and those accepted as `lost`."""

    in_log: Sequence[OffsetRange]
    to_read: Sequence[OffsetRange]
    before_origin: Sequence[OffsetRange]
    accounted: Sequence[OffsetRange]
    lost: Sequence[OffsetRange]


def judge(held: DataFrame, bounds: Bounds, *, is_compacted: bool) -> DataFrame:
    """Add `apart`, the difference that the row's ID shows, if any, and `is_accounted`, to the rows of `hold`.

    Leaves out records that ingest is still to read, and those of the log from before reading began that raw lacks.
    """
    for name in ("in_log", "to_read", "before_origin", "accounted", "lost"):
        found = f"is_{name}"
        held = held.transform(looked_up(((piece, 1) for piece in getattr(bounds, name)), found))
        held = held.withColumn(found, F.col(found).isNotNull())
    # What a person accepted as lost never counts in quarantine, whether or not its line is there.
    is_quarantined = F.col("is_lost") & (F.col("window_ms") == QUARANTINE)
    held = held.withColumns(
        {"is_accounted": F.col("is_accounted") | is_quarantined, "is_lost": F.col("is_lost") & ~is_quarantined}
    )
    in_raw = F.col("raw_contents") > 0
    several = F.col("contents") > 1
    is_old = F.coalesce(F.col("log_epoch") != F.col("leader_epoch"), F.lit(False))  # from before the log was cut
    apart = (
        F.when(several & (F.col("raw_contents") > 1), Difference.SEVERAL)
        .when(several, Difference.OTHER_CONTENT)
        .when(F.col("is_lost"), Difference.STATED_LOST)
        .when(~in_raw, Difference.NOT_IN_RAW)
        .when(
            ~F.col("in_kafka") & F.col("is_in_log") & ~is_old,
            Difference.COMPACTED if is_compacted else Difference.NOT_IN_LOG,
        )
        .when(in_raw & _is_in_other_file(), Difference.OTHER_WINDOW)
        .when(~F.col("is_accounted"), Difference.UNACCOUNTED)
    )
    return held.where(~F.col("is_to_read") & (in_raw | ~F.col("is_before_origin"))).withColumn("apart", apart)


def find_first_offsets(lines: DataFrame) -> dict[KafkaPartition, int]:
    """Return the smallest offset of each Kafka partition."""
    rows = lines.groupBy(*ID_COLUMNS[:2]).agg(F.min("offset").alias("first")).collect()  # one a Kafka partition
    return {KafkaPartition(row.generation, row.kafka_partition): row.first for row in rows}


def count_windows(judged: DataFrame) -> dict[datetime | None, WindowAudit]:
    """Return every window that has a held record, with its differences; None is quarantine."""
    in_raw, in_kafka = F.col("lines") > 0, F.col("in_kafka")
    rows = (
        judged.groupBy("window_ms")
        .agg(
            F.count(F.when(in_raw & in_kafka, 1)).alias("both"),
            F.count(F.when(in_raw & ~in_kafka, 1)).alias("only_in_raw"),
            F.count(F.when(~in_raw, 1)).alias("only_in_kafka"),
            F.sum("lines").alias("lines"),
            F.count(F.when(~F.col("is_accounted"), 1)).alias("unaccounted"),
            F.count(F.when(F.col("contents") > 1, 1)).alias("conflicts"),
            F.count(F.when(_counts(), 1)).alias("records"),
            *(F.coalesce(F.sum(F.when(_counts(), F.col(h))), F.lit(0)).alias(h) for h in HALVES),
        )
        .collect()  # one row a window
    )
    audits: dict[datetime | None, WindowAudit] = {}
    for row in sorted(rows, key=lambda row: row.window_ms):
        digest = Digest(row.records, *(getattr(row, h) for h in HALVES))
        held = HeldRecords(
            row.both, row.only_in_raw, row.only_in_kafka, row.lines, row.unaccounted, row.conflicts, digest
        )
        audits[_parse_window(row.window_ms)] = WindowAudit(_parse_window(row.window_ms), held)
    _add_differences(judged, audits)
    return audits


def aggregate_held(judged: DataFrame, contract: Contract) -> DataFrame:
    """Return window_ms, keys and measures of the records that are held, each ID with one content once."""
    return judged.where(_counts() & (F.col("window_ms") != QUARANTINE)).transform(aggregate(contract))


def _add_differences(judged: DataFrame, audits: dict[datetime | None, WindowAudit]) -> None:
    """Add by window and kind the number of IDs that differ, and the first of them. An ID counts in each window where
    its content belongs or a file has it."""
    places = F.array_distinct(F.array_compact(F.array("window_ms", "first_file", "last_file")))
    by_kind = Window.partitionBy("place_ms", "apart")
    rows = (
        judged.where("apart IS NOT NULL")
        .select("apart", *ID_COLUMNS, F.explode(places).alias("place_ms"))
        .distinct()
        .withColumn("nth", F.row_number().over(by_kind.orderBy(*ID_COLUMNS)))
        .withColumn("n", F.count(F.lit(1)).over(by_kind))
        .where(F.col("nth") <= MAX_IDS)
        .groupBy("place_ms", "apart")
        .agg(F.max("n").alias("n"), F.sort_array(F.collect_list(F.struct(*ID_COLUMNS))).alias("ids"))
        .collect()  # at most MAX_IDS IDs a window and kind
    )
    for row in rows:
        start = _parse_window(row.place_ms)
        ids = tuple(encode_id(KafkaPartition(at.generation, at.kafka_partition), at.offset).decode() for at in row.ids)
        audits.setdefault(start, WindowAudit(start)).differences[Difference(row.apart)] = (row.n, ids)


def _counts() -> Column:
    return F.col("contents") == 1


def _is_in_other_file() -> Column:
    """Whether a window file has the line that is not its window's; a copy in quarantine besides is what a release
    leaves."""
    window, first, last = F.col("window_ms"), F.col("first_file"), F.col("last_file")
    own = F.coalesce((first == window) & (last == window), F.lit(False))
    return F.when(window == QUARANTINE, first.isNotNull()).otherwise(~own)


def _parse_window(window_ms: int) -> datetime | None:
    return None if window_ms == QUARANTINE else from_ms(window_ms)
