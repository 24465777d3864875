"""A pipeline's watermark in the ledger, from its Kafka partitions' event times and holes."""

from __future__ import annotations

from datetime import datetime, timedelta

from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.model.window import PartitionProgress, compute_watermark


def advance_watermark(
    connection: Connection,
    epoch: Epoch,
    generation: str,
    allowed_lateness: timedelta,
    idle_after: timedelta,
    seen_ago: timedelta = timedelta(0),
) -> tuple[datetime | None, bool]:
    """Advance the watermark, which never moves back. Returns the watermark, and whether every window is closed.

    A hole holds the watermark back, in an earlier generation too: the event times of missing records are unknown. The
    ends of the logs were read `seen_ago`: a Kafka partition is known to have been quiet until then, and no longer; one
    with records behind an open transaction is not quiet. One without event times is quiet too: tombstones and
    quarantined records close no window, and hold none open.
    """
    with connection.transaction():
        require_epoch(connection, epoch)
        rows = connection.execute(
            """
            SELECT kafka_partition, max_event_time,
              CASE WHEN frontier >= greatest(reach, end_offset, high_watermark)
                THEN clock_timestamp() - %s - caught_up_since END AS caught_up_for
            FROM onceover.kafka_partition WHERE pipeline = %s AND (generation = %s OR frontier < reach)
            """,
            [seen_ago, epoch.pipeline, generation],
        ).fetchall()
        progress = [PartitionProgress(row["max_event_time"], row["caught_up_for"]) for row in rows]
        moment, every_window_closed = compute_watermark(progress, allowed_lateness, idle_after)
        furthest = max((each.max_event_time for each in progress if each.max_event_time), default=None)
        row = connection.execute(
            """
            UPDATE onceover.pipeline SET watermark = greatest(watermark, %(moment)s), every_window_closed = %(closed)s,
              held_since = CASE WHEN %(closed)s OR %(moment)s > coalesce(watermark, '-infinity')
                  OR coalesce(%(furthest)s <= greatest(watermark, %(moment)s), %(furthest)s IS NULL) THEN NULL
                ELSE coalesce(held_since, clock_timestamp()) END
            WHERE name = %(name)s RETURNING watermark
            """,
            {
                "moment": moment,
                "closed": every_window_closed,
                "furthest": furthest and furthest - allowed_lateness,
                "name": epoch.pipeline,
            },
        ).fetchone()
    return (row["watermark"] if row else None), every_window_closed
