"""The order in which transactions lock rows: windows by their starts, then Kafka partitions, so that none deadlock.

The rows to lock are found before they are locked. A caller looks again afterwards, for others may have written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from onceover.errors import BusyError
from onceover.ledger.database import Connection
from onceover.ledger.windows import lock_windows
from onceover.model.offsets import KafkaPartition


def lock_rows(
    connection: Connection,
    pipeline: str,
    windows: Iterable[datetime],
    sources: Collection[KafkaPartition] | None = None,
) -> frozenset[datetime]:
    """Lock these windows, then the Kafka partitions, all if None, until the open transaction ends; return the windows.

    Landings and accepted losses advance the frontier, so they wait for each other at the Kafka partitions.
    """
    starts = sorted(set(windows))
    lock_windows(connection, pipeline, starts)
    connection.execute(
        """
        SELECT 1 FROM onceover.kafka_partition WHERE pipeline = %s AND (%s OR (generation, kafka_partition) IN (
          SELECT * FROM unnest(%s::text[], %s::integer[])))
        ORDER BY generation, kafka_partition FOR UPDATE
        """,
        [
            pipeline,
            sources is None,
            [source.generation for source in sources or ()],
            [source.kafka_partition for source in sources or ()],
        ],
    )
    return frozenset(starts)


def require_locked(pipeline: str, locked: frozenset[datetime], needed: Iterable[datetime]) -> None:
    """Raise BusyError if a window has to be written that is not locked: another transaction named it meanwhile."""
    if more := sorted(set(needed) - locked):
        raise BusyError(
            f"another transaction has written to {pipeline} meanwhile, so that {len(more)} more windows are concerned, "
            f"the first of {more[0]:%Y-%m-%dT%H:%MZ}; nothing was changed, try again"
        )
