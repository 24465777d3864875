"""Decisions about conflicts: the one content that counts where raw holds several for an ID."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from onceover.errors import UsageError
from onceover.ledger.database import Connection
from onceover.model.conflict import Decision
from onceover.model.line import encode_id
from onceover.model.offsets import KafkaPartition


def record_decision(
    connection: Connection, pipeline: str, window_start: datetime, decision: Decision, who: str, why: str
) -> None:
    """Record the decision, and have the window judged again. A later decision about the same ID replaces it.

    Raises UsageError unless an open conflict of that window names the ID with that content.
    """
    source = decision.source
    record_id = encode_id(source, decision.offset).decode()
    with connection.transaction():
        suspect = connection.execute(
            """
            SELECT s->'contents' AS contents FROM onceover.finding f,
              jsonb_array_elements(coalesce(f.evidence->'suspects', '[]')) s
            WHERE f.pipeline = %s AND f.window_start = %s AND f.resolved_at IS NULL AND s->>'id' = %s
            """,
            [pipeline, window_start, record_id],
        ).fetchone()
        if suspect is None:
            raise UsageError(f"no open conflict of that window names {record_id}; see `onceover explain`")
        hashes = [content["hash"] for content in suspect["contents"]]
        if decision.kept not in hashes:
            raise UsageError(
                f"{record_id} has the contents {', '.join(hashes)}; keep one of them, not {decision.kept[:40]!r}"
            )
        connection.execute(
            """
            INSERT INTO onceover.decision
              (pipeline, window_start, generation, kafka_partition, record_offset, kept, who, why)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
            """,
            [
                pipeline,
                window_start,
                source.generation,
                source.kafka_partition,
                decision.offset,
                decision.kept,
                who,
                why,
            ],
        )
        connection.execute(
            'UPDATE onceover."window" SET version = version + 1 WHERE pipeline = %s AND window_start = %s',
            [pipeline, window_start],
        )


def list_decisions(connection: Connection, request_id: int) -> dict[datetime, tuple[Decision, ...]]:
    """Return by window the last decision about each ID, for the windows of a repair request."""
    rows = connection.execute(
        """
        SELECT DISTINCT ON (d.window_start, d.generation, d.kafka_partition, d.record_offset) d.window_start,
          d.generation, d.kafka_partition, d.record_offset, d.kept
        FROM onceover.repair r JOIN onceover.decision d ON d.pipeline = r.pipeline AND d.window_start = r.window_start
        WHERE r.request_id = %s ORDER BY 1, 2, 3, 4, d.decision_id DESC
        """,
        [request_id],
    )
    decisions: dict[datetime, tuple[Decision, ...]] = {}
    for row in rows:
        decision = Decision(
            KafkaPartition(row["generation"], row["kafka_partition"]), row["record_offset"], row["kept"]
        )
        decisions[row["window_start"]] = (*decisions.get(row["window_start"], ()), decision)
    return decisions


def read_decisions(connection: Connection, decision_ids: Sequence[int]) -> tuple[Decision, ...]:
    """Return the decisions with these IDs; of several about one record ID the last one holds."""
    rows = connection.execute(
        """
        SELECT DISTINCT ON (generation, kafka_partition, record_offset) generation, kafka_partition, record_offset, kept
        FROM onceover.decision WHERE decision_id = ANY(%s) ORDER BY 1, 2, 3, decision_id DESC
        """,
        [list(decision_ids)],
    )
    return tuple(
        Decision(KafkaPartition(row["generation"], row["kafka_partition"]), row["record_offset"], row["kept"])
        for row in rows
    )
