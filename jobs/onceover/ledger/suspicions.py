"""Suspicions: offsets that landed more than once under different leader epochs, whose contents have to be compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from onceover.ledger.database import Connection
from onceover.ledger.windows import bump_versions, lock_windows
from onceover.model.batch import Landing, RangeRead
from onceover.model.log_history import EpochSpan, cut_at_epochs, find_overlaps, split_by_epoch
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce, intersect


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Offsets that landed with different contents, perhaps, and the windows in which their records are."""

    offsets: OffsetRange
    windows: tuple[datetime, ...]
    suspicion_id: int | None = None
    times: int = 1  # that the offsets were suspected


def find_suspicions(
    connection: Connection, pipeline: str, read: Sequence[RangeRead], landings: Sequence[Landing]
) -> list[Suspicion]:
    """Return the offsets of these ranges that landed before under another leader epoch, or under an unknown one."""
    found: list[Suspicion] = []
    reach = read_reach(connection, pipeline)
    for piece in read:
        spans = split_by_epoch(piece)
        if not spans or piece.offsets.start >= reach.get(piece.offsets.source, 0):
            continue
        landed = _list_landed(connection, pipeline, piece.offsets)
        own = {
            x.window_start for x in landings if x.window_start and piece.offsets.source in {p.source for p in x.parts}
        }
        for overlap in find_overlaps(spans, [span for _, spans in landed for span in spans]):
            others = [batch for batch, spans in landed if any(s.offsets.overlaps(overlap) for s in spans)]
            windows = own.union(_list_windows(connection, pipeline, others, overlap))
            found.append(Suspicion(overlap, tuple(sorted(windows))))
    return found


def suspect_everywhere(
    connection: Connection, pipeline: str, ranges: Iterable[OffsetRange], window_start: datetime
) -> list[Suspicion]:
    """Return suspicions of these offsets of a window, with the windows in which batches that read them landed."""
    found: list[Suspicion] = []
    for offsets in ranges:
        batches = [batch for batch, _ in _list_landed(connection, pipeline, offsets)]
        windows = {window_start}.union(_list_windows(connection, pipeline, batches, offsets))
        found.append(Suspicion(offsets, tuple(sorted(windows))))
    return found


def suspect_released(
    connection: Connection, pipeline: str, ids: Iterable[OffsetRange], windows: Iterable[datetime]
) -> list[Suspicion]:
    """Return the offsets among these IDs, which a release lands in these windows, that several batches read, under
    different leader epochs or unknown ones: their contents may have been compared before one was released."""
    by_source: dict[KafkaPartition, list[OffsetRange]] = {}
    for piece in ids:
        by_source.setdefault(piece.source, []).append(piece)
    own, found = frozenset(windows), []
    for pieces in by_source.values():
        hull = OffsetRange(pieces[0].source, min(p.start for p in pieces), max(p.end for p in pieces))
        for twice in coalesce(list_read_twice(connection, pipeline, hull)):
            if released := intersect([twice], pieces):
                offsets = OffsetRange(twice.source, released[0].start, released[-1].end)
                batches = [batch for batch, _ in _list_landed(connection, pipeline, offsets)]
                others = _list_windows(connection, pipeline, batches, offsets)
                found.append(Suspicion(offsets, tuple(sorted(own.union(others)))))
    return found


def record_suspicions(connection: Connection, pipeline: str, found: Iterable[Suspicion]) -> None:
    """Record these suspicions, and reopen their windows, in one transaction. Known ones are counted once more."""
    for each in found:
        with connection.transaction():
            lock_windows(connection, pipeline, each.windows)
            values = {
                "pipeline": pipeline,
                "generation": each.offsets.source.generation,
                "partition": each.offsets.source.kafka_partition,
                "start": each.offsets.start,
                "end": each.offsets.end,
                "windows": list(each.windows),
            }
            known = connection.execute(
                """
                UPDATE onceover.suspicion SET times = times + 1 WHERE pipeline = %(pipeline)s AND settled_at IS NULL
                  AND generation = %(generation)s AND kafka_partition = %(partition)s AND start_offset <= %(start)s
                  AND end_offset >= %(end)s AND windows @> %(windows)s
                """,
                values,
            )
            if not known.rowcount:
                connection.execute(
                    """
                    INSERT INTO onceover.suspicion
                      (pipeline, generation, kafka_partition, start_offset, end_offset, windows)
                    VALUES (%(pipeline)s, %(generation)s, %(partition)s, %(start)s, %(end)s, %(windows)s)
                    """,
                    values,
                )
            bump_versions(connection, pipeline, each.windows)


def list_suspicions(connection: Connection, pipeline: str) -> list[Suspicion]:
    """Return the suspicions that are not settled, in the order in which they were recorded."""
    rows = connection.execute(
        "SELECT * FROM onceover.suspicion WHERE pipeline = %s AND settled_at IS NULL ORDER BY suspicion_id", [pipeline]
    )
    return [
        Suspicion(
            OffsetRange(KafkaPartition(r["generation"], r["kafka_partition"]), r["start_offset"], r["end_offset"]),
            tuple(r["windows"]),
            r["suspicion_id"],
            r["times"],
        )
        for r in rows
    ]


def list_quarantine_days(connection: Connection, pipeline: str, ranges: Iterable[OffsetRange]) -> list[date]:
    """Return the days of quarantine in which batches landed that read these offsets."""
    batches = [batch for offsets in ranges for batch, _ in _list_landed(connection, pipeline, offsets)]
    rows = connection.execute(
        "SELECT DISTINCT quarantine_day FROM onceover.landing WHERE batch_id = ANY(%s) AND quarantine_day IS NOT NULL",
        [batches],
    )
    return sorted(row["quarantine_day"] for row in rows)


def list_read_twice(connection: Connection, pipeline: str, offsets: OffsetRange) -> tuple[OffsetRange, ...]:
    """Return those of these offsets that several batches landed, under different leader epochs or unknown ones."""
    spans = sorted(
        ((span, batch) for batch, spans in _list_landed(connection, pipeline, offsets) for span in spans),
        key=lambda item: item[0].offsets,
    )
    twice: list[OffsetRange] = []
    earlier: list[tuple[EpochSpan, int]] = []
    for span, batch in spans:
        earlier = [(other, of) for other, of in earlier if other.offsets.end > span.offsets.start]
        twice += find_overlaps([span], [other for other, of in earlier if of != batch])
        earlier.append((span, batch))
    return intersect(twice, [offsets])


def settle(connection: Connection, found: Iterable[Suspicion]) -> None:
    """Mark these suspicions as settled, for their contents were compared; not those suspected again since."""
    settled = list(found)
    connection.execute(
        "UPDATE onceover.suspicion SET settled_at = clock_timestamp() WHERE (suspicion_id, times) IN ("
        "SELECT * FROM unnest(%s::bigint[], %s::integer[]))",
        [[each.suspicion_id for each in settled], [each.times for each in settled]],
    )


def read_reach(connection: Connection, pipeline: str) -> dict[KafkaPartition, int]:
    """Return the end of what may have landed: nearly every batch begins there, and overlaps nothing."""
    rows = connection.execute(
        "SELECT generation, kafka_partition, reach FROM onceover.kafka_partition WHERE pipeline = %s", [pipeline]
    )
    return {KafkaPartition(row["generation"], row["kafka_partition"]): row["reach"] for row in rows}


def _list_landed(
    connection: Connection, pipeline: str, offsets: OffsetRange
) -> list[tuple[int, tuple[EpochSpan, ...]]]:
    """Return the landed batches that overlap these offsets, without releases: their records are in quarantine."""
    rows = connection.execute(
        """
        SELECT r.batch_id, r.start_offset, r.end_offset, r.leader_epochs FROM onceover.batch_range r
        JOIN onceover.batch b USING (batch_id)
        WHERE b.pipeline = %(pipeline)s AND b.state = 'landed' AND r.records > 0 AND r.generation = %(generation)s
          AND r.kafka_partition = %(partition)s AND r.end_offset > %(start)s AND r.start_offset < %(end)s
        """,
        {
            "pipeline": pipeline,
            "generation": offsets.source.generation,
            "partition": offsets.source.kafka_partition,
            "start": offsets.start,
            "end": offsets.end,
        },
    )
    return [
        (
            row["batch_id"],
            cut_at_epochs(OffsetRange(offsets.source, row["start_offset"], row["end_offset"]), row["leader_epochs"]),
        )
        for row in rows
    ]


def _list_windows(
    connection: Connection, pipeline: str, batches: Sequence[int], offsets: OffsetRange
) -> list[datetime]:
    """Return the windows in which these batches, and the releases of these offsets, landed records of the partition."""
    rows = connection.execute(
        """
        SELECT DISTINCT l.window_start FROM onceover.landing l JOIN onceover.landing_part p USING (landing_id)
        WHERE l.batch_id IN (
            SELECT unnest(%(batches)s::bigint[])
            UNION SELECT e.batch_id FROM onceover.release e JOIN onceover.exact_range x USING (batch_id)
            WHERE e.pipeline = %(pipeline)s AND x.generation = %(generation)s AND x.kafka_partition = %(partition)s
              AND x.end_offset > %(start)s AND x.start_offset < %(end)s)
          AND l.window_start IS NOT NULL AND p.generation = %(generation)s AND p.kafka_partition = %(partition)s
        """,
        {
            "batches": list(batches),
            "pipeline": pipeline,
            "generation": offsets.source.generation,
            "partition": offsets.source.kafka_partition,
            "start": offsets.start,
            "end": offsets.end,
        },
    )
    return [row["window_start"] for row in rows]
