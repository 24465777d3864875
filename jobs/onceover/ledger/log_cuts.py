"""Logs that were cut and have grown again: the leader epochs of landed offsets, and the reading that starts over."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from onceover.errors import BusyError
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.ledger.locks import lock_rows
from onceover.model.log_history import NO_EPOCH, EpochSpan, cut_at_epochs, find_unknown, join_spans
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, intersect, subtract

_logger = logging.getLogger(__name__)
NOT_WHOLE: Final = -1
"""The leader epoch of a comparison that has to be made again, as the log ends before what landed, or differs."""


# Whether a log of the pipeline of w has, may have, or lost, other records under landed offsets: no window is certified.
LOG_MAY_DIFFER = """
  EXISTS (SELECT FROM onceover.kafka_partition cut WHERE cut.pipeline = w.pipeline
    AND (coalesce(cut.diverged_from, cut.unknown_from) IS NOT NULL OR cut.overwritten <> '{}'))"""
WHY_CUT: Final = (
    "Kafka's log has, may have, or lost, other records under offsets that landed: no window is certified until ingest "
    "has read them again, or a person accepts their loss; `onceover explain` says which"
)


@dataclass(frozen=True, slots=True)
class ComparedLog:
    """What the ledger knows of one log: how far its records landed, the leader epoch at which they were compared with
    it (None: not since the ledger was rebuilt), and the first offset that has another record now."""

    reach: int
    compared_epoch: int | None
    diverged_from: int | None


def read_compared_logs(connection: Connection, pipeline: str, generation: str) -> Mapping[KafkaPartition, ComparedLog]:
    """Return what is known of each Kafka partition's log."""
    rows = connection.execute(
        "SELECT kafka_partition, reach, compared_epoch, diverged_from FROM onceover.kafka_partition "
        "WHERE pipeline = %s AND generation = %s",
        [pipeline, generation],
    )
    return {
        KafkaPartition(generation, r["kafka_partition"]): ComparedLog(
            r["reach"], r["compared_epoch"], r["diverged_from"]
        )
        for r in rows
    }


def is_uncompared(connection: Connection, pipeline: str, generation: str | None) -> bool:
    """Return whether a log of this generation, or of any if None, has to be compared before a window is certified."""
    row = connection.execute(
        "SELECT 1 FROM onceover.kafka_partition WHERE pipeline = %s AND compared_epoch IS NULL "
        "AND coalesce(generation = %s, true) LIMIT 1",
        [pipeline, generation],
    ).fetchone()
    return row is not None


def may_log_differ(connection: Connection, pipeline: str) -> bool:
    """Return whether a log has, may have, or lost, other records under landed offsets. Ask in the transaction that
    certifies a window, once it holds the window's row."""
    row = connection.execute(
        f"SELECT {LOG_MAY_DIFFER} AS may_log_differ FROM (SELECT %s::text AS pipeline) w", [pipeline]
    ).fetchone()
    return bool(row and row["may_log_differ"])


def list_landed_epochs(connection: Connection, pipeline: str, log: OffsetRange) -> list[EpochSpan]:
    """Return the landed offsets from the log's start on by the leader epoch of their records, in the order in which
    they were read. An epoch is unknown where leaders changed during a read."""
    rows = connection.execute(
        """
        SELECT r.start_offset, r.end_offset, r.records, r.leader_epochs
        FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id)
        WHERE b.pipeline = %(pipeline)s AND b.state = 'landed' AND r.generation = %(generation)s
          AND r.kafka_partition = %(partition)s AND r.end_offset > %(start)s
        ORDER BY r.batch_id, r.start_offset
        """,
        {
            "pipeline": pipeline,
            "generation": log.source.generation,
            "partition": log.source.kafka_partition,
            "start": log.start,
        },
    )
    return join_spans(
        span
        for r in rows
        for span in cut_at_epochs(
            OffsetRange(log.source, r["start_offset"], r["end_offset"]),
            r["leader_epochs"] or ([(NO_EPOCH, r["start_offset"])] if r["records"] == 0 else ()),
        )
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of a `log` with what had `landed` of it: the first offset with another record, and the first one
    that cannot be compared until it is read again, None for neither. `compared_epoch` is the log's leader epoch,
    NOT_WHOLE while the comparison has to be made again."""

    log: OffsetRange
    landed: Sequence[EpochSpan]
    diverged_from: int | None
    unknown_from: int | None
    compared_epoch: int


def record_comparison(connection: Connection, pipeline: str, compared: Comparison, driver: Epoch | None) -> bool:
    """Record where the log has another record than landed; return whether that was not known. The comparison has to be
    made again, too, if more of the log has landed than it knew.

    The caller is the driver, or there is none: raises FencedError for a lost epoch, BusyError if one runs.
    """
    source, diverged_from = compared.log.source, compared.diverged_from
    key = [pipeline, source.generation, source.kafka_partition]
    with connection.transaction():
        if driver is not None:
            require_epoch(connection, driver)
        elif (
            row := connection.execute(  # locked whether or not it has expired: a driver that starts waits here
                # The last row is superseded only if a driver took over while this one waited.
                "SELECT superseded_at IS NOT NULL OR expires_at >= clock_timestamp() AS lives FROM onceover.driver "
                "WHERE pipeline = %s ORDER BY epoch DESC LIMIT 1 FOR UPDATE",
                [pipeline],
            ).fetchone()
        ) and row["lives"]:
            raise BusyError(f"ingest of {pipeline} runs: it compares the log itself")
        lock_rows(connection, pipeline, (), [source])
        before = connection.execute(
            "SELECT diverged_from FROM onceover.kafka_partition "
            "WHERE pipeline = %s AND generation = %s AND kafka_partition = %s",
            key,
        ).fetchone()
        is_same = list_landed_epochs(connection, pipeline, compared.log) == list(compared.landed)
        _keep_unread(connection, pipeline, source, compared.log)
        connection.execute(
            "UPDATE onceover.kafka_partition SET diverged_from = %s, unknown_from = %s, compared_epoch = %s, "
            "diverged_after = (SELECT coalesce(max(batch_id), 0) FROM onceover.batch) "
            "WHERE pipeline = %s AND generation = %s AND kafka_partition = %s",
            [diverged_from, compared.unknown_from, compared.compared_epoch if is_same else None, *key],
        )
        return diverged_from is not None and before is not None and before["diverged_from"] != diverged_from


def _keep_unread(connection: Connection, pipeline: str, source: KafkaPartition, log: OffsetRange | None) -> None:
    """Keep what was to be read again and the log lost before as overwritten, in the open transaction. `log` is what it
    holds now, None: nothing."""
    row = connection.execute(
        "SELECT reach, diverged_from, unknown_from, diverged_after FROM onceover.kafka_partition "
        "WHERE pipeline = %s AND generation = %s AND kafka_partition = %s",
        [pipeline, source.generation, source.kafka_partition],
    ).fetchone()
    if row is None:
        return
    end, unread = row["reach"] if log is None else min(log.start, row["reach"]), list[OffsetRange]()
    for first in {row["diverged_from"], row["unknown_from"]} - {None}:
        if first >= end:
            continue
        gone = OffsetRange(source, first, end)
        landed = list_landed_epochs(connection, pipeline, gone)
        if first == row["diverged_from"]:
            again = _list_read_since(connection, pipeline, gone, row["diverged_after"] or 0)
            unread += subtract(intersect(coalesce(span.offsets for span in landed), [gone]), again)
        if first == row["unknown_from"]:
            unread += find_unknown(landed, gone)
    if unread:
        _logger.warning(
            "%s: the log lost other records than landed, or what may have been such, before they were read: %s; no "
            "window is certified until `onceover accept-loss %s RANGE --overwritten --from TIME --to TIME --reason "
            '"..."`',
            pipeline, ", ".join(map(str, coalesce(unread))), pipeline,
        )  # fmt: skip
    connection.execute(
        """
        UPDATE onceover.kafka_partition SET overwritten = overwritten - int8multirange(int8range(%s, %s)) + coalesce((
          SELECT range_agg(int8range(low, high)) FROM unnest(%s::bigint[], %s::bigint[]) g (low, high)), '{}')
        WHERE pipeline = %s AND generation = %s AND kafka_partition = %s
        """,
        [
            log.start if log else 0,
            log.end if log else 0,
            [piece.start for piece in unread],
            [piece.end for piece in unread],
            *(pipeline, source.generation, source.kafka_partition),
        ],
    )


def _list_read_since(
    connection: Connection, pipeline: str, offsets: OffsetRange, batch_id: int
) -> tuple[OffsetRange, ...]:
    """Return what landed of these offsets by batches that began after this one."""
    rows = connection.execute(
        "SELECT r.start_offset, r.end_offset FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id) "
        "WHERE b.pipeline = %s AND b.state = 'landed' AND b.batch_id > %s AND r.generation = %s "
        "AND r.kafka_partition = %s",
        [pipeline, batch_id, offsets.source.generation, offsets.source.kafka_partition],
    )
    return coalesce(OffsetRange(offsets.source, row["start_offset"], row["end_offset"]) for row in rows)


def end_comparisons(connection: Connection, pipeline: str, living: str | None) -> bool:
    """Keep as overwritten what was to be read again of a topic that was deleted, or of all its generations but the
    `living` one; return whether there was such."""
    with connection.transaction():
        rows = connection.execute(
            "SELECT generation, kafka_partition FROM onceover.kafka_partition "
            "WHERE pipeline = %s AND generation IS DISTINCT FROM %s "
            "AND coalesce(diverged_from, unknown_from) IS NOT NULL",
            [pipeline, living],
        )
        sources = [KafkaPartition(row["generation"], row["kafka_partition"]) for row in rows]
        lock_rows(connection, pipeline, (), sources)
        for source in sources:
            _keep_unread(connection, pipeline, source, None)
        connection.cursor().executemany(
            "UPDATE onceover.kafka_partition SET diverged_from = NULL, unknown_from = NULL, compared_epoch = NULL "
            "WHERE pipeline = %s AND generation = %s AND kafka_partition = %s",
            [(pipeline, at.generation, at.kafka_partition) for at in sources],
        )
    return bool(sources)
