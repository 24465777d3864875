"""Decisions about conflicts: the one content that counts where raw holds several for an ID."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from onceover.errors import UsageError
from onceover.ledger import conflicts, losses
from onceover.ledger.database import Connection
from onceover.model.conflict import NEWEST, Content, ContestedId, Decision, OwnContents
from onceover.model.offsets import KafkaPartition, OffsetRange, coalesce
from onceover.model.record import encode_id
from onceover.model.window import format_moment

# The content that Kafka's log held when those of the ID of decision d were compared; NULL if unknown.
NEWEST_CONTENT = """(
  SELECT c.content FROM onceover.conflict c
  WHERE c.pipeline = d.pipeline AND c.generation = d.generation AND c.kafka_partition = d.kafka_partition
    AND c.record_offset = d.record_offset AND c.leader_epoch IS NOT NULL ORDER BY c.leader_epoch DESC LIMIT 1)"""

# The contents of the ID of decision d that belong to its window.
_OWN_CONTENTS = """ARRAY(
  SELECT own.content FROM unnest(d.contents) AS own (content)
  WHERE NOT EXISTS (
    SELECT FROM onceover.conflict c
    WHERE c.pipeline = d.pipeline AND c.generation = d.generation AND c.kafka_partition = d.kafka_partition
      AND c.record_offset = d.record_offset AND c.content = own.content
      AND c.window_start IS DISTINCT FROM d.window_start)
  ORDER BY 1)"""


def record_decision(
    connection: Connection, pipeline: str, window_start: datetime, decision: Decision, who: str, why: str
) -> list[datetime]:
    """Record the decision for every window that a content of the ID belongs to, and have these judged again. A later
    decision about the same ID replaces it. `kept` may be the first digits of one content's hash. Returns those windows.

    Raises UsageError unless an open conflict of that window names the ID with that content.
    """
    source = decision.source
    record_id = encode_id(source, decision.offset).decode()
    with connection.transaction():
        contents = conflicts.list_contents(connection, pipeline, source, decision.offset)
        if window_start in {content.window_start for content in contents}:
            kept = _choose(record_id, [content.hash for content in contents], decision.kept)
            return _record(connection, pipeline, [(kept, contents)], who, why)
        contested = connection.execute(
            """
            SELECT s->'contents' AS contents FROM onceover.finding f,
              jsonb_array_elements(coalesce(f.evidence->'contested', '[]')) s
            WHERE f.pipeline = %s AND f.window_start = %s AND f.resolved_at IS NULL AND s->>'id' = %s
            """,
            [pipeline, window_start, record_id],
        ).fetchone()
        if contested is None:
            raise UsageError(f"no open conflict of that window names {record_id}; see `onceover explain`")
        hashes = [content["hash"] for content in contested["contents"]]
        kept = _choose(record_id, hashes, decision.kept)
        connection.execute(
            """
            INSERT INTO onceover.decision
              (pipeline, window_start, generation, kafka_partition, record_offset, kept, contents, who, why)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
            """,
            [
                pipeline,
                window_start,
                source.generation,
                source.kafka_partition,
                decision.offset,
                kept,
                hashes,
                who,
                why,
            ],
        )
        _reopen(connection, pipeline, [window_start], [decision.offsets])
    return [window_start]


def _reopen(connection: Connection, pipeline: str, windows: Sequence[datetime], decided: Sequence[OffsetRange]) -> None:
    """Have these windows judged again. All contents of a decided ID are in raw: where one was accepted as lost, the
    windows that state so are judged again too."""
    conflicts.reopen(connection, pipeline, {*windows, *losses.list_stating(connection, pipeline, decided)})
    losses.reland(connection, pipeline, decided)


@dataclass(frozen=True, slots=True)
class DecidedConflicts:
    """How many IDs were decided, the windows that their contents belong to, and the contents of each ID that is left
    because which of them is the newest is not known."""

    ids: int
    windows: tuple[datetime, ...]
    left: tuple[ContestedId, ...] = ()


def decide_all(
    connection: Connection, pipeline: str, window_start: datetime, keep: str, who: str, why: str
) -> DecidedConflicts:
    """Decide the open conflicts of the window, in one transaction: for the content that Kafka's log held when the
    contents were compared (`newest`), or for the one other content (`oldest`).

    IDs for which that is not known are left. Raises UsageError without an open conflict.
    """
    with connection.transaction():
        ordered = conflicts.list_undecided(connection, pipeline, window_start)
        by_id = [list(group) for _, group in groupby(ordered, key=lambda c: (c.source, c.offset))]
        if not by_id:
            moment = format_moment(window_start)
            raise UsageError(f"window {moment} has no open conflict; see `onceover explain {pipeline} {moment}`")
        kept = [(_choose_by_age(contents, keep), contents) for contents in by_id]
        chosen = [(content, contents) for content, contents in kept if content is not None]
        windows = _record(connection, pipeline, chosen, who, why)
    left = [contents for content, contents in kept if content is None]
    return DecidedConflicts(len(chosen), tuple(windows), tuple(map(conflicts.build_contested_id, left)))


def _choose(record_id: str, hashes: Sequence[str], kept: str) -> str:
    matching = [each for each in hashes if each.startswith(kept)]
    if len(matching) != 1:
        raise UsageError(f"{record_id} has the contents {', '.join(hashes)}; keep one of them, not {kept[:40]!r}")
    return matching[0]


def _choose_by_age(contents: Sequence[Content], keep: str) -> str | None:
    """Return the newest content's hash, or the one other's; None if that is not known."""
    newest = max((c.leader_epoch for c in contents if c.leader_epoch is not None), default=None)
    matching = [c.hash for c in contents if newest is not None and (c.leader_epoch == newest) == (keep == NEWEST)]
    return matching[0] if len(matching) == 1 else None


def _record(
    connection: Connection, pipeline: str, chosen: Sequence[tuple[str, Sequence[Content]]], who: str, why: str
) -> list[datetime]:
    rows = [
        (pipeline, start, contents[0].source.generation, contents[0].source.kafka_partition, contents[0].offset, kept,
         [c.hash for c in contents], who, why)
        for kept, contents in chosen
        for start in sorted({c.window_start for c in contents if c.window_start is not None})
    ]  # fmt: skip
    windows = sorted({row[1] for row in rows})
    decided = [OffsetRange(c[0].source, c[0].offset, c[0].offset + 1) for _, c in chosen]
    _reopen(connection, pipeline, windows, coalesce(decided))
    connection.cursor().executemany(
        """
        INSERT INTO onceover.decision
          (pipeline, window_start, generation, kafka_partition, record_offset, kept, contents, who, why, created_at)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, clock_timestamp())
        """,
        rows,
    )
    return windows


def list_decisions(connection: Connection, request_id: int) -> dict[datetime, tuple[Decision, ...]]:
    """Return by window the last decision about each ID, for the windows of a repair request."""
    rows = connection.execute(
        f"""
        SELECT DISTINCT ON (d.window_start, d.generation, d.kafka_partition, d.record_offset) d.window_start,
          d.generation, d.kafka_partition, d.record_offset, d.kept, {NEWEST_CONTENT} AS newest,
          {_OWN_CONTENTS} AS contents
        FROM onceover.repair r JOIN onceover.decision d ON d.pipeline = r.pipeline AND d.window_start = r.window_start
        WHERE r.request_id = %s ORDER BY 1, 2, 3, 4, d.decision_id DESC
        """,
        [request_id],
    )
    decisions: dict[datetime, tuple[Decision, ...]] = {}
    for row in rows:
        decisions[row["window_start"]] = (*decisions.get(row["window_start"], ()), _build_decision(row))
    return decisions


def read_decisions(connection: Connection, decision_ids: Sequence[int]) -> tuple[Decision, ...]:
    """Return the decisions with these IDs; of several about one record ID the last one holds."""
    rows = connection.execute(
        f"""
        SELECT DISTINCT ON (generation, kafka_partition, record_offset) generation, kafka_partition, record_offset,
          kept, {NEWEST_CONTENT} AS newest, {_OWN_CONTENTS} AS contents
        FROM onceover.decision d WHERE decision_id = ANY(%s) ORDER BY 1, 2, 3, decision_id DESC
        """,
        [list(decision_ids)],
    )
    return tuple(_build_decision(row) for row in rows)


def list_own_contents(
    connection: Connection, pipeline: str, starts: Sequence[datetime]
) -> dict[datetime, tuple[OwnContents, ...]]:
    """Return by window the contents of its IDs in conflict."""
    rows = connection.execute(
        f"""
        SELECT window_start, generation, kafka_partition, record_offset, {NEWEST_CONTENT} AS newest,
          array_agg(content ORDER BY content) AS contents
        FROM onceover.conflict d WHERE d.pipeline = %s AND d.window_start = ANY(%s)
        GROUP BY pipeline, window_start, generation, kafka_partition, record_offset
        """,
        [pipeline, list(starts)],
    )
    contents: dict[datetime, tuple[OwnContents, ...]] = {}
    for row in rows:
        own = OwnContents(_build_source(row), row["record_offset"], row["newest"], tuple(row["contents"]))
        contents[row["window_start"]] = (*contents.get(row["window_start"], ()), own)
    return contents


def _build_decision(row: Mapping[str, Any]) -> Decision:
    return Decision(_build_source(row), row["record_offset"], row["kept"], row["newest"], tuple(row["contents"]))


def _build_source(row: Mapping[str, Any]) -> KafkaPartition:
    return KafkaPartition(row["generation"], row["kafka_partition"])
