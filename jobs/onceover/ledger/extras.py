"""Extras: records that count in a window though they have landed nowhere, as its certificate names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from onceover.ledger.batches import list_in_flight
from onceover.ledger.columns import GIVEN, parse_spans, range_arrays, read_range
from onceover.ledger.database import Connection, by_index
from onceover.ledger.landed_offsets import read_accounted
from onceover.model.log_history import EpochSpan, cut_at_epochs, intersect_spans
from onceover.model.offsets import OffsetRange, intersect


def list_extras(
    connection: Connection, pipeline: str, *, of_expired: bool = False
) -> dict[datetime, tuple[EpochSpan, ...]]:
    """Return the windows whose last certificate counts extras, with these; `of_expired` windows, too."""
    rows = connection.execute(
        """
        SELECT w.window_start, c.extras FROM onceover.certificate c
        JOIN onceover."window" w ON w.pipeline = c.pipeline AND w.window_start = c.window_start
          AND w.certificate_id = c.certificate_id
        WHERE c.pipeline = %s AND c.extras <> '[]' AND (%s OR w.expired_at IS NULL) ORDER BY 1
        """,
        [pipeline, of_expired],
    )
    return {row["window_start"]: parse_spans(row["extras"]) for row in rows}


def list_landed_spans(connection: Connection, pipeline: str, offsets: Sequence[OffsetRange]) -> list[EpochSpan]:
    """Return what landed of these offsets, in any window, by leader epoch. Asks no batch if none of them landed."""
    landed = intersect(read_accounted(connection, pipeline), offsets)
    if not landed:
        return []
    with by_index(connection):
        rows = connection.execute(
            f"""
            SELECT r.generation, r.kafka_partition, r.start_offset, r.end_offset, r.leader_epochs FROM {GIVEN}
            CROSS JOIN LATERAL ( -- one range after the other
              SELECT * FROM (SELECT batch_id, generation, kafka_partition, start_offset, end_offset, leader_epochs
                FROM onceover.batch_range UNION ALL SELECT *, '[]' FROM onceover.released) both_kinds
              WHERE generation = g.generation AND kafka_partition = g.kafka_partition
                AND start_offset < g.end_offset AND g.start_offset < end_offset OFFSET 0) r
            WHERE (SELECT b.pipeline = %(pipeline)s AND b.state = 'landed' FROM onceover.batch b
              WHERE b.batch_id = r.batch_id)
            """,
            {"pipeline": pipeline, **range_arrays(landed)},
        ).fetchall()
    spans = (span for row in rows for span in cut_at_epochs(read_range(row), row["leader_epochs"]))
    return intersect_spans(spans, [EpochSpan(each, None) for each in landed])  # a range may lie in an accepted loss


def list_landed_extras(
    connection: Connection, pipeline: str, extras: Mapping[datetime, Sequence[EpochSpan]]
) -> dict[datetime, list[EpochSpan]]:
    """Return the windows that have extras which have landed since, in any window, with these."""
    offsets = [each.offsets for spans in extras.values() for each in spans]
    landed = list_landed_spans(connection, pipeline, offsets) if offsets else []
    return {start: found for start, spans in extras.items() if (found := intersect_spans(spans, landed))}


def explain_wait(connection: Connection, pipeline: str, extras: Sequence[EpochSpan]) -> str | None:
    """Return why these extras cannot count now: one has landed, or a batch of a live driver may still land it. None if
    they can."""
    offsets = [each.offsets for each in extras]
    if landed := intersect_spans(extras, list_landed_spans(connection, pipeline, offsets)):
        return f"{landed[0].offsets}, which had landed nowhere, has landed meanwhile; the window is judged again"
    if begun := intersect(_list_begun(connection, pipeline), offsets):
        return f"a batch in flight may still land {begun[0]}; the next repair judges the window again"
    return None


def find_other_window(
    connection: Connection, pipeline: str, start: datetime, extras: Sequence[EpochSpan]
) -> tuple[datetime, OffsetRange] | None:
    """Return another window whose certificate counts one of these extras, with its offset. Until the open transaction
    ends, no other may find out the same."""
    # Two transactions that certify different windows do not see each other's certificates.
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"onceover extras {pipeline}"])
    for other, spans in list_extras(connection, pipeline, of_expired=True).items():
        if other != start and (both := intersect_spans(spans, extras)):
            return other, both[0].offsets
    return None


def _list_begun(connection: Connection, pipeline: str) -> list[OffsetRange]:
    """Return the offsets of batches that may still land, in order."""
    rows = connection.execute(
        "SELECT generation, kafka_partition, start_offset, end_offset FROM onceover.batch_range "
        "WHERE batch_id = ANY(%s) ORDER BY 1, 2, 3",
        [sorted(list_in_flight(connection, pipeline))],
    )
    return list(map(read_range, rows))
