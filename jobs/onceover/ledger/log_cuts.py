"""Logs that were cut: what landed is compared with Kafka's log by the leader epochs of its records.

A log that lost its end, and may have grown again, holds other records under offsets that landed. From the first such
offset on all is to be read, as if nothing had landed there; what did counts as before.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from onceover.errors import BusyError
from onceover.kafka.log_probe import LogProbe
from onceover.kafka.reader import KafkaSource
from onceover.kafka.topic import TopicFacts
from onceover.ledger.columns import read_range
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch, supersede_begun
from onceover.ledger.landed_offsets import list_landed
from onceover.ledger.log_limits import list_unreadable
from onceover.ledger.losses import list_stating, reland
from onceover.ledger.read_again import refuse_cut_holes
from onceover.ledger.rollups import keep_apart
from onceover.ledger.windows import bump_versions, lock_rows, require_locked
from onceover.model.log_history import (
    NO_EPOCH,
    EpochSpan,
    cut_at_epochs,
    find_divergence,
    join_spans,
    skip_unreadable,
)
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, intersect
from onceover.model.wording import pluralize

_logger = logging.getLogger(__name__)
_FOR_EVER: Final = 2**63 - 1


def _read_logs(connection: Connection, pipeline: str, generation: str) -> dict[KafkaPartition, Mapping[str, Any]]:
    """Return of each Kafka partition's log its `reach`, the end of what was read or skipped, the `compared_epoch` at
    which what landed was compared with it (None: not since the ledger was rebuilt), and from where on it was
    `cut_from`, until it is read from there on."""
    rows = connection.execute(
        "SELECT kafka_partition, reach, compared_epoch, CASE WHEN reach <= cut_from THEN cut_from END AS cut_from "
        "FROM onceover.kafka_partition WHERE pipeline = %s AND generation = %s",
        [pipeline, generation],
    )
    return {KafkaPartition(generation, row["kafka_partition"]): row for row in rows}


def is_uncompared(connection: Connection, pipeline: str, generation: str | None) -> bool:
    """Return whether a log of this generation, or of any if None, has to be compared before a window is certified."""
    row = connection.execute(
        "SELECT 1 FROM onceover.kafka_partition WHERE pipeline = %s AND compared_epoch IS NULL "
        "AND coalesce(generation = %s, true) LIMIT 1",
        [pipeline, generation],
    ).fetchone()
    return row is not None


def record_cuts(
    connection: Connection, pipeline: str, facts: TopicFacts, source: KafkaSource, driver: Epoch | None = None
) -> Mapping[int, int]:
    """Return by Kafka partition the offset from which on a log that was cut is to be read.

    Compares each log whose leader epoch has changed, and records where it was cut; costs one query where none has. The
    caller is the driver, or there is none: raises FencedError for a lost epoch, BusyError if one runs or landed records
    meanwhile.
    """
    logs = _read_logs(connection, pipeline, facts.generation)
    changed = {
        at: log
        for at, log in logs.items()
        if facts.leader_epochs.get(at.kafka_partition, log["compared_epoch"]) != log["compared_epoch"]
    }
    for at, log in changed.items():
        _compare(connection, pipeline, at, log["reach"], facts, source, driver)
    if changed:
        logs = _read_logs(connection, pipeline, facts.generation)
    return {at.kafka_partition: log["cut_from"] for at, log in logs.items() if log["cut_from"] is not None}


def _compare(
    connection: Connection,
    pipeline: str,
    at: KafkaPartition,
    reach: int,
    facts: TopicFacts,
    source: KafkaSource,
    driver: Epoch | None,
) -> None:
    number, end = at.kafka_partition, facts.end[at.kafka_partition]
    log = OffsetRange(at, min(facts.earliest[number], end), end)
    landed = list_landed_epochs(connection, pipeline, log)
    cut_from, past = None, 0
    if landed:
        with closing(LogProbe(source, number, end)) as probe:
            unreadable = intersect(list_unreadable(connection, pipeline, at.generation), [log])
            current = coalesce([*list_landed(connection, pipeline, [log]), *unreadable])
            cut_from = find_divergence(landed, current, skip_unreadable(probe.find_epoch, unreadable))
    # Readers get no record beyond this end, so that none has landed there: it lies below the reach after a cut only,
    # whatever an open transaction hides behind it.
    if cut_from is None and end < reach:
        cut_from = end
    if cut_from is not None:
        past = sum(map(len, list_landed(connection, pipeline, [OffsetRange(at, cut_from, reach)])))
    record_comparison(connection, pipeline, log, landed, cut_from, facts.leader_epochs[number], driver)
    if cut_from is not None:
        _logger.warning(
            "%s-%d was cut: from offset %d on its log holds other records than landed, or none yet. Both count, and "
            "reading starts over there; up to %s that landed are in raw alone",
            facts.topic, number, cut_from, pluralize(past, "record"),
        )  # fmt: skip


def list_landed_epochs(connection: Connection, pipeline: str, log: OffsetRange) -> list[EpochSpan]:
    """Return what landed from the log's start on by the leader epoch of its records. An epoch is unknown where records
    that carry none are among others."""
    rows = connection.execute(
        """
        SELECT r.generation, r.kafka_partition, r.start_offset, r.end_offset, r.records, r.leader_epochs
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
        for row in rows
        for span in cut_at_epochs(
            read_range(row), row["leader_epochs"] or ([(NO_EPOCH, row["start_offset"])] if row["records"] == 0 else ())
        )
    )


def record_comparison(
    connection: Connection,
    pipeline: str,
    log: OffsetRange,
    landed: Sequence[EpochSpan],
    cut_from: int | None,
    leader_epoch: int,
    driver: Epoch | None,
) -> None:
    """Record that what `landed` was compared with the log under this leader epoch, and from where on the log is to be
    read: what landed there is past and closes no window, and nothing there is accepted as lost any more. Raises as
    `record_cuts`."""
    source = log.source
    key = {"pipeline": pipeline, "generation": source.generation, "partition": source.kafka_partition}
    beyond = [] if cut_from is None else [OffsetRange(source, cut_from, _FOR_EVER)]
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
        else:  # a driver that was paused may come back with records of before the cut
            supersede_begun(connection, pipeline)
        locked = lock_rows(connection, pipeline, list_stating(connection, pipeline, beyond), [source])
        stating = list_stating(connection, pipeline, beyond)
        require_locked(pipeline, locked, stating)
        if list_landed_epochs(connection, pipeline, log) != list(landed):
            raise BusyError(f"ingest of {pipeline} has landed records meanwhile: it has compared the log itself")
        connection.execute(
            "UPDATE onceover.kafka_partition SET compared_epoch = %(epoch)s WHERE pipeline = %(pipeline)s "
            "AND generation = %(generation)s AND kafka_partition = %(partition)s",
            {**key, "epoch": leader_epoch},
        )
        if cut_from is None:
            return
        reland(connection, pipeline, beyond)
        bump_versions(connection, pipeline, stating)
        keep_apart(connection, pipeline, beyond)
        connection.execute(
            """
            UPDATE onceover.batch_range r SET past_from = greatest(r.start_offset, %(cut)s) FROM onceover.batch b
            WHERE b.batch_id = r.batch_id AND b.pipeline = %(pipeline)s AND b.state = 'landed'
              AND r.generation = %(generation)s AND r.kafka_partition = %(partition)s
              AND r.end_offset > %(cut)s AND coalesce(r.past_from > %(cut)s, true)
            """,
            {**key, "cut": cut_from},
        )
        connection.execute(
            """
            UPDATE onceover.kafka_partition SET frontier = least(frontier, %(cut)s), reach = %(cut)s,
              past_to = greatest(past_to, reach), cut_from = %(cut)s, end_offset = %(end)s, high_watermark = %(end)s,
              hidden_since = NULL, read_until = NULL, max_event_time = NULL
            WHERE pipeline = %(pipeline)s AND generation = %(generation)s AND kafka_partition = %(partition)s
            """,
            {**key, "cut": cut_from, "end": log.end},
        )
        refuse_cut_holes(connection, pipeline, beyond[0])


def end_cuts(connection: Connection, pipeline: str) -> bool:
    """Make a hole, up to its end, of each log that was to be read from a cut on, as its topic was deleted; return
    whether there was such."""
    ended = connection.execute(
        "UPDATE onceover.kafka_partition SET reach = greatest(reach, end_offset), cut_from = NULL "
        "WHERE pipeline = %s AND reach <= cut_from",
        [pipeline],
    )
    return ended.rowcount > 0
