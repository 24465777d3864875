"""Suspicions settled: the lines of all windows that hold the suspected IDs are read together and compared."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from itertools import chain

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from onceover.context import PipelineContext
from onceover.errors import OnceoverError
from onceover.kafka.held_log import clip_to_held
from onceover.kafka.reader import KafkaSource
from onceover.ledger import conflicts, suspicions
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.root import RootRefusedError
from onceover.ledger.suspicions import Suspicion
from onceover.model.claim import ClaimedWindow
from onceover.model.conflict import Content
from onceover.model.digest import HALVES
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, subtract
from onceover.model.rebuilt_window import RebuiltWindow
from onceover.model.record import ID_COLUMNS
from onceover.model.window import Window, format_moment, from_ms, to_ms
from onceover.repair.held_sides import SidePaths, find_unheld, list_paths
from onceover.spark import lines
from onceover.spark.failure import isolate_failures
from onceover.spark.range_join import looked_up
from onceover.spark.raw_lines import QUARANTINE, LineFile, read_raw_lines
from onceover.spark.source import read_ranges

log = logging.getLogger(__name__)
WAITS = "some of its offsets landed more than once, and their contents are compared first"
_AT_ONCE, _MOST_NAMED = 10_000, 5
_OF_DAY = "the quarantine of "
_NAMED = (*ID_COLUMNS, "event_ms", *HALVES)


def settle_suspicions(
    spark: SparkSession, context: PipelineContext, claimed: Sequence[ClaimedWindow]
) -> tuple[Sequence[ClaimedWindow], Mapping[datetime, str]]:
    """Compare the contents of all suspected IDs; record those that have several as conflicts, and reopen their windows.

    A suspicion stays open while a window that landed its offsets does not hold them, or cannot be read. Return the
    claims with the suspicions that are left, and by window why it has to wait.
    """
    waits = _settle(spark, context)
    left = conflicts.read_contested(context.ledger, context.name, [claim.window_start for claim in claimed])
    suspected = {start: contested.suspected for start, contested in left.items()}
    return [
        replace(claim, contested=replace(claim.contested, suspected=suspected.get(claim.window_start, 0)))
        for claim in claimed
    ], waits


def _settle(spark: SparkSession, context: PipelineContext) -> Mapping[datetime, str]:
    """Settle what can be settled, and return by window why it waits."""
    connection, pipeline = context.ledger, context.name
    found = suspicions.list_suspicions(connection, pipeline)
    if not found:
        return {}
    twice = {each: suspicions.list_read_twice(connection, pipeline, each.offsets) for each in found}
    days = {each: suspicions.list_quarantine_days(connection, pipeline, [each.offsets]) for each in found}
    windows = sorted({start for each in found for start in each.windows})
    paths = list_paths(context, windows, chain.from_iterable(days.values()))
    sides = sorted({start for each in found if twice[each] for start in each.windows})
    unheld, unreadable = find_unheld(spark, context, context.read_registration(), sides, paths)
    readable = paths.leave_out(unreadable)

    def compare(some: Sequence[Suspicion]) -> Mapping[datetime, str]:
        ranges = coalesce(each.offsets for each in some)
        contents = _record_contents(spark, context, readable, windows, ranges)
        waiting = {
            each: names
            for each in some
            if (names := _list_unheld(each, twice[each], unheld, paths.short_days.intersection(days[each])))
        }
        suspicions.settle(connection, [each for each in some if each not in waiting])
        log.info(
            "compared %d offsets that landed more than once: %d contents in conflict; %d of %d suspicions wait",
            sum(map(len, ranges)), contents, len(waiting), len(some),
        )  # fmt: skip
        return {start: explain_wait(pipeline, each, names) for each, names in waiting.items() for start in each.windows}

    def leave(each: Suspicion, reason: str) -> Mapping[datetime, str]:
        log.error("%s landed more than once, and its contents were not compared: %s", each.offsets, reason)
        return dict.fromkeys(each.windows, f"{each.offsets} landed more than once, and cannot be compared: {reason}")

    return dict(chain.from_iterable(waits.items() for waits in isolate_failures(found, compare, leave)))


def _list_unheld(
    suspicion: Suspicion,
    twice: Sequence[OffsetRange],
    unheld: Mapping[datetime, Sequence[OffsetRange]],
    short_days: Iterable[date],
) -> list[str]:
    """Return the names of the windows and days of quarantine that do not hold what they landed of these offsets."""
    if not twice:  # raw alone has another content, so the proof of its window refuses it
        return []
    windows = [
        format_moment(start)
        for start in suspicion.windows
        if any(part.overlaps(piece) for part in unheld.get(start, ()) for piece in twice)
    ]
    return [*windows, *(f"{_OF_DAY}{day}" for day in sorted(short_days))]


def explain_wait(pipeline: str, suspicion: Suspicion, names: Sequence[str]) -> str:
    """Return why the windows of a suspicion wait, by the names of those that do not hold its lines, days last."""
    shown = ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else "")
    of_days = (
        "; bring the file of a day of quarantine back, or declare the day expired; see which that would be: `onceover "
        f"retention {pipeline} --adopt-missing --dry-run`"
    )
    return (
        f"{suspicion.offsets} landed more than once, perhaps with different contents, and raw of {shown} does not hold "
        "them as they landed; see `onceover explain` there, and repair again"
        + (of_days if names[-1].startswith(_OF_DAY) else "")
    )


def record_conflicts(
    connection: Connection,
    registered: RegisteredPipeline,
    claimed: ClaimedWindow,
    rebuilt: RebuiltWindow,
    doubtful: Sequence[OffsetRange],
) -> None:
    """Record the conflicts that one window's files show, and suspect the doubtful offsets of landing in others too."""
    minutes = registered.contract.window_minutes
    seen = [
        Content(s.source, s.offset, name, Window.of(from_ms(ms), minutes).start, from_ms(ms))
        for s in rebuilt.contested
        for name, ms in s.contents
        if ms is not None and len({name for name, _ in s.contents}) > 1
    ]
    with connection.transaction():
        windows = conflicts.record_contents(connection, registered.name, seen) if seen else set()
        # This window has just been judged; the others have not seen the conflict.
        conflicts.reopen(connection, registered.name, windows - {claimed.window_start})
    found = suspicions.suspect_everywhere(connection, registered.name, doubtful, claimed.window_start)
    suspicions.record_suspicions(connection, registered.name, found)


def _record_contents(
    spark: SparkSession,
    context: PipelineContext,
    paths: SidePaths,
    windows: Sequence[datetime],
    ranges: Sequence[OffsetRange],
) -> int:
    """Record the contents of these IDs that have several, chunk by chunk, and return their number."""
    records = _read_records(spark, context, paths, windows)
    if records is None:
        return 0
    key, count = F.struct(*ID_COLUMNS, "hash"), 0
    found = _compare(records, ranges, context).transform(_mark_newest(spark, context, ranges))
    found = found.withColumn("key", key).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        rows = found.orderBy("key").limit(_AT_ONCE).collect()
        while rows:
            with context.ledger.transaction():
                reopened = conflicts.record_contents(context.ledger, context.name, map(_build_content, rows))
                conflicts.reopen(context.ledger, context.name, reopened)
            count += len(rows)
            last = F.struct(*map(F.lit, rows[-1].key)).cast(found.schema["key"].dataType)
            rows = (
                found.where(F.col("key") > last).orderBy("key").limit(_AT_ONCE).collect()
                if len(rows) == _AT_ONCE
                else []
            )
    finally:
        with suppress(Py4JError, OSError):  # a JVM that died keeps nothing
            found.unpersist()
    return count


def _read_records(
    spark: SparkSession, context: PipelineContext, paths: SidePaths, windows: Sequence[datetime]
) -> DataFrame | None:
    """Return the records of all files that may hold the suspected IDs; None without any file."""
    text = {start: paths.text[start] for start in windows if start in paths.text}
    of_windows = (text, paths.compacted)
    files = [LineFile(to_ms(at), file.path, file.length) for each in of_windows for at, file in each.items()]
    files += [LineFile(QUARANTINE, file.path, file.length) for file in paths.quarantine.values()]
    if not files:
        return None
    read = read_raw_lines(spark, context.raw_address, files, "intact", *_NAMED)
    return read.where("intact").select("window_ms", *_NAMED)


def _compare(records: DataFrame, ranges: Sequence[OffsetRange], context: PipelineContext) -> DataFrame:
    """Return a row for each content of the IDs that have several: window_ms, ID, event_ms and hash."""
    length = context.read_registration().contract.window_minutes * 60_000
    placed = F.col("event_ms") - F.pmod("event_ms", F.lit(length)) == F.col("window_ms")
    of_id = records.where(placed | (F.col("window_ms") == QUARANTINE))
    suspected = of_id.transform(looked_up(((piece, 1) for piece in ranges), "suspected")).where("suspected IS NOT NULL")
    contents = (
        suspected.transform(_add_hash)
        .groupBy(*ID_COLUMNS, "hash")
        .agg(F.max("window_ms").alias("window_ms"), F.max("event_ms").alias("event_ms"))
    )
    several = (
        contents.groupBy(*ID_COLUMNS).agg(F.count(F.lit(1)).alias("contents")).where("contents > 1").drop("contents")
    )
    return contents.join(several, list(ID_COLUMNS))


def _mark_newest(
    spark: SparkSession, context: PipelineContext, ranges: Sequence[OffsetRange]
) -> Callable[[DataFrame], DataFrame]:
    """Add `leader_epoch` to the contents that Kafka's log holds now; null for all if it cannot be read."""

    def add(contents: DataFrame) -> DataFrame:
        held = _list_held(context, ranges)
        if held is None:
            return contents.withColumn("leader_epoch", F.lit(None).cast("int"))
        source, pieces = held
        in_log = (
            read_ranges(spark, source, pieces)
            .withColumn("generation", F.lit(pieces[0].source.generation))
            .transform(_add_hash)
            .select(*ID_COLUMNS, "hash", "leader_epoch")
        )
        return contents.join(in_log, [*ID_COLUMNS, "hash"], "left")

    return add


def _list_held(
    context: PipelineContext, ranges: Sequence[OffsetRange]
) -> tuple[KafkaSource, tuple[OffsetRange, ...]] | None:
    """Return the parts of the ranges that the log holds and readers get, None if there are none, or Kafka does not
    answer. Raise RootRefusedError as `open_own_topic`."""
    try:
        with context.open_own_topic() as topic:
            facts = topic.facts()
    except RootRefusedError:
        raise
    except OnceoverError as error:
        log.warning("the contents that Kafka holds now are not known: %s", error)
        return None
    source = context.build_source(facts)
    pieces = subtract([clip_to_held(piece, facts) for piece in ranges], source.unreadable)
    return (source, pieces) if pieces else None


def _add_hash(records: DataFrame) -> DataFrame:
    return records.withColumn("hash", lines.hash_content())


def _build_content(row: Row) -> Content:
    in_window = row.window_ms != QUARANTINE
    return Content(
        KafkaPartition(row.generation, row.kafka_partition),
        row.offset,
        row.hash,
        from_ms(row.window_ms) if in_window else None,
        from_ms(row.event_ms) if in_window else None,
        row.leader_epoch,
    )
