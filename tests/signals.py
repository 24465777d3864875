"""Signals of a pipeline that was never run, as a ledger could have held them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from onceover.ledger.windows import WindowState
from onceover.model.finding_kinds import Kind
from onceover.model.gap import Reason
from onceover.observability.metric_values import DriverState, KafkaPartitionProgress, Signals

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
FLIGHTS: Final = Signals(
    pipeline="flights",
    driver=DriverState.DEAD,
    progress_at=NOON,
    watermark=NOON,
    held_since=NOON,
    landed=7,
    superseded=2,
    scheduling_delay=1.5,
    processing=2.25,
    landed_at=NOON,
    kafka_partitions={
        0: KafkaPartitionProgress(100, 3, 5, NOON, NOON, 4, 104, NOON),
        1: KafkaPartitionProgress(10, 0, 0, None),
    },
    windows={WindowState.CERTIFIED: 40, WindowState.BLOCKED: 1},
    overdue=2,
    log_retention=3600.0,
    log_until=NOON.timestamp() + 60,
    findings={Kind.LATE: 4},
    holes={Reason.EXPIRED: 27},
    too_many=20,
    too_few=1,
    skipped={"bytes": 3},
)
