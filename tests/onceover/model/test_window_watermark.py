from __future__ import annotations

from datetime import UTC, datetime, timedelta

from onceover.model.window import PartitionProgress, compute_watermark

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def judge(*partitions: PartitionProgress) -> tuple[datetime | None, bool]:
    return compute_watermark(partitions, allowed_lateness=HOUR, idle_after=MINUTE)


def test_watermark_is_the_slowest_kafka_partition_minus_lateness() -> None:
    fast, slow = PartitionProgress(NOON, None), PartitionProgress(NOON - HOUR, None)
    assert judge(fast, slow) == (NOON - 2 * HOUR, False)


def test_kafka_partition_caught_up_and_idle_is_left_out() -> None:
    assert judge(PartitionProgress(NOON, None), PartitionProgress(NOON - HOUR, MINUTE)) == (NOON - HOUR, False)


def test_kafka_partition_caught_up_but_not_for_long_counts() -> None:
    just = PartitionProgress(NOON - HOUR, MINUTE - timedelta(seconds=1))
    assert judge(PartitionProgress(NOON, None), just) == (NOON - 2 * HOUR, False)


def test_idle_kafka_partitions_close_every_window() -> None:
    assert judge(PartitionProgress(NOON, MINUTE), PartitionProgress(None, HOUR)) == (None, True)


def test_kafka_partition_behind_without_a_time_closes_nothing() -> None:
    assert judge(PartitionProgress(NOON, None), PartitionProgress(None, None)) == (None, False)


def test_watermark_without_kafka_partitions_closes_nothing() -> None:
    assert judge() == (None, False)
