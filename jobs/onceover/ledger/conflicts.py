"""Conflicts: IDs with several contents, in one window or in two, until a person decides which content counts.

A decision holds for the contents that were known then: a further one makes the ID undecided again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from onceover.ledger.database import Connection
from onceover.ledger.locks import lock_rows
from onceover.ledger.windows import bump_versions, lock_windows
from onceover.model.conflict import MOST_SHOWN, Content, Contested, ContestedId
from onceover.model.offsets import KafkaPartition
from onceover.model.window import to_ms

# Conflict c has no decision between all of its contents, for its window.
_UNDECIDED = """
  NOT EXISTS (
    SELECT FROM onceover.decision d
    WHERE d.pipeline = c.pipeline AND d.generation = c.generation AND d.kafka_partition = c.kafka_partition
      AND d.record_offset = c.record_offset AND d.window_start = c.window_start AND NOT EXISTS (
        SELECT FROM onceover.conflict o
        WHERE o.pipeline = c.pipeline AND o.generation = c.generation AND o.kafka_partition = c.kafka_partition
          AND o.record_offset = c.record_offset AND o.content <> ALL(d.contents)))"""
# Contents of window w's IDs are still to be compared, or decided on.
IS_CONTESTED = f"""(
  EXISTS (
    SELECT FROM onceover.suspicion s
    WHERE s.pipeline = w.pipeline AND s.settled_at IS NULL AND w.window_start = ANY(s.windows))
  OR EXISTS (
    SELECT FROM onceover.conflict c
    WHERE c.pipeline = w.pipeline AND c.window_start = w.window_start AND {_UNDECIDED}))"""


def record_contents(connection: Connection, pipeline: str, contents: Iterable[Content]) -> set[datetime]:
    """Lock the windows of these contents of IDs in conflict, and record them. A known content only gains its leader
    epoch, or loses it to the content that Kafka's log holds now, or gains the window that it was released into. Return
    the windows of the IDs that have a new content, or one that gained its window.
    """
    rows = sorted(contents, key=lambda c: (c.source, c.offset, c.hash))
    lock_rows(connection, pipeline, (c.window_start for c in rows if c.window_start), ())
    known = _list_known(connection, pipeline, rows)
    connection.cursor().executemany(
        """
        INSERT INTO onceover.conflict AS c (pipeline, generation, kafka_partition, record_offset, content, window_start,
          event_time, leader_epoch)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
        ON CONFLICT (pipeline, generation, kafka_partition, record_offset, content)
        DO UPDATE SET leader_epoch = coalesce(excluded.leader_epoch, c.leader_epoch),
          window_start = coalesce(c.window_start, excluded.window_start),
          event_time = coalesce(c.event_time, excluded.event_time)
        """,
        [
            (pipeline, c.source.generation, c.source.kafka_partition, c.offset, c.hash, c.window_start, c.event_time,
             c.leader_epoch)
            for c in rows
        ],
    )  # fmt: skip
    held = [c for c in rows if c.leader_epoch is not None]
    connection.execute(
        """
        UPDATE onceover.conflict c SET leader_epoch = NULL
        FROM unnest(%s::text[], %s::integer[], %s::bigint[], %s::text[])
          AS held (generation, kafka_partition, record_offset, content)
        WHERE c.pipeline = %s AND c.generation = held.generation AND c.kafka_partition = held.kafka_partition
          AND c.record_offset = held.record_offset AND c.content <> held.content AND c.leader_epoch IS NOT NULL
        """,
        [
            [c.source.generation for c in held],
            [c.source.kafka_partition for c in held],
            [c.offset for c in held],
            [c.hash for c in held],
            pipeline,
        ],
    )
    changed = {
        (c.source, c.offset)
        for c in rows
        if (at := (c.source, c.offset, c.hash)) not in known or (c.window_start is not None and not known[at])
    }
    return {c.window_start for c in rows if c.window_start is not None and (c.source, c.offset) in changed}


def _list_known(
    connection: Connection, pipeline: str, contents: Sequence[Content]
) -> dict[tuple[KafkaPartition, int, str], bool]:
    """Return all known contents of these IDs, and whether each is in a window."""
    found = connection.execute(
        """
        SELECT generation, kafka_partition, record_offset, content, window_start FROM onceover.conflict
        WHERE pipeline = %s AND (generation, kafka_partition, record_offset) IN (
          SELECT * FROM unnest(%s::text[], %s::integer[], %s::bigint[]))
        """,
        [
            pipeline,
            [c.source.generation for c in contents],
            [c.source.kafka_partition for c in contents],
            [c.offset for c in contents],
        ],
    )
    return {
        (KafkaPartition(r["generation"], r["kafka_partition"]), r["record_offset"], r["content"]): (
            r["window_start"] is not None
        )
        for r in found
    }


def reopen(connection: Connection, pipeline: str, windows: Iterable[datetime]) -> None:
    """Have these windows judged again."""
    starts = sorted(windows)
    lock_windows(connection, pipeline, starts)
    bump_versions(connection, pipeline, starts)


def list_undecided(connection: Connection, pipeline: str, window_start: datetime) -> list[Content]:
    """Return all contents of the window's undecided IDs, in the order of IDs."""
    rows = connection.execute(
        f"""
        SELECT a.* FROM onceover.conflict a JOIN onceover.conflict c
          USING (pipeline, generation, kafka_partition, record_offset)
        WHERE c.pipeline = %s AND c.window_start = %s AND {_UNDECIDED}
        GROUP BY a.pipeline, a.generation, a.kafka_partition, a.record_offset, a.content
        ORDER BY a.generation, a.kafka_partition, a.record_offset, a.content
        """,
        [pipeline, window_start],
    )
    return [_build_content(row) for row in rows]


def list_contents(connection: Connection, pipeline: str, source: KafkaPartition, offset: int) -> list[Content]:
    """Return the contents of one ID in conflict, none without a conflict."""
    rows = connection.execute(
        "SELECT * FROM onceover.conflict WHERE pipeline = %s AND generation = %s AND kafka_partition = %s "
        "AND record_offset = %s ORDER BY content",
        [pipeline, source.generation, source.kafka_partition, offset],
    )
    return [_build_content(row) for row in rows]


def read_contested(connection: Connection, pipeline: str, starts: Sequence[datetime]) -> dict[datetime, Contested]:
    """Return, of these windows, those that have conflicts, decisions or suspicions."""
    touched = connection.execute(
        """
        SELECT window_start FROM onceover.conflict WHERE pipeline = %(pipeline)s AND window_start = ANY(%(starts)s)
        UNION SELECT window_start FROM onceover.decision
        WHERE pipeline = %(pipeline)s AND window_start = ANY(%(starts)s)
        UNION SELECT unnest(windows) FROM onceover.suspicion WHERE pipeline = %(pipeline)s AND settled_at IS NULL
        """,
        {"pipeline": pipeline, "starts": list(starts)},
    )
    known = set(starts)
    return {
        row["window_start"]: _read_window(connection, pipeline, row["window_start"])
        for row in touched.fetchall()
        if row["window_start"] in known
    }


def _read_window(connection: Connection, pipeline: str, window_start: datetime) -> Contested:
    key = {"pipeline": pipeline, "start": window_start}
    row = connection.execute(
        f"""
        WITH certified AS (
          SELECT coalesce(c.decisions, '{{}}') AS decisions, coalesce(c.last_landing, 0) AS last_landing
          FROM onceover."window" w LEFT JOIN onceover.certificate c ON c.certificate_id = w.certificate_id
          WHERE w.pipeline = %(pipeline)s AND w.window_start = %(start)s
        ), decided AS (
          SELECT d.* FROM onceover.decision d WHERE d.pipeline = %(pipeline)s AND d.window_start = %(start)s)
        SELECT
          (SELECT count(DISTINCT (c.generation, c.kafka_partition, c.record_offset)) FROM onceover.conflict c
            WHERE c.pipeline = %(pipeline)s AND c.window_start = %(start)s AND {_UNDECIDED}) AS undecided,
          (SELECT coalesce(sum(end_offset - start_offset), 0)::bigint FROM onceover.suspicion
            WHERE pipeline = %(pipeline)s AND settled_at IS NULL AND %(start)s = ANY(windows)) AS suspected,
          (SELECT count(*) FROM decided, certified
            WHERE NOT decided.decision_id = ANY(certified.decisions)) AS uncertified,
          (SELECT count(DISTINCT (d.generation, d.kafka_partition, d.record_offset))
            FROM decided d, certified c, onceover.landing l JOIN onceover.batch_range r USING (batch_id)
            WHERE l.pipeline = %(pipeline)s AND l.window_start = %(start)s AND l.landing_id > c.last_landing
              AND r.generation = d.generation AND r.kafka_partition = d.kafka_partition
              AND r.start_offset <= d.record_offset AND d.record_offset < r.end_offset) AS landed
        """,
        key,
    ).fetchone()
    if row is None:
        return Contested()
    shown = _group_contents(list_undecided(connection, pipeline, window_start)) if row["undecided"] else ()
    return Contested(row["undecided"], row["suspected"], row["uncertified"], row["landed"], shown)


def _group_contents(contents: Iterable[Content]) -> tuple[ContestedId, ...]:
    by_id: dict[tuple[KafkaPartition, int], list[Content]] = {}
    for content in contents:
        by_id.setdefault((content.source, content.offset), []).append(content)
    return tuple(map(build_contested_id, list(by_id.values())[:MOST_SHOWN]))


def build_contested_id(contents: Sequence[Content]) -> ContestedId:
    """Return one ID with these contents."""
    times = tuple((c.hash, None if c.event_time is None else to_ms(c.event_time)) for c in contents)
    return ContestedId(contents[0].source, contents[0].offset, times)


def _build_content(row: Mapping[str, object]) -> Content:
    values: dict[str, object] = dict(row)
    start, event_time, epoch = values["window_start"], values["event_time"], values["leader_epoch"]
    return Content(
        KafkaPartition(str(values["generation"]), int(str(values["kafka_partition"]))),
        int(str(values["record_offset"])),
        str(values["content"]),
        start if isinstance(start, datetime) else None,
        event_time if isinstance(event_time, datetime) else None,
        None if epoch is None else int(str(epoch)),
    )
