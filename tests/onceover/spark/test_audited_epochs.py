"""An audit compares the records of an ID under each leader epoch: where a log was cut, the old and the new one are both
right."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.onceover.spark.contracts import NOON

from onceover.audit.comparison import Bounds, judge
from onceover.audit.log_and_raw import hold
from onceover.audit.result import Difference
from onceover.model.digest import HALVES
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.spark.session import choose_codegen

pytestmark = pytest.mark.spark
SOURCE = KafkaPartition("0badcafe", 3)
SCHEMA = ("generation string, kafka_partition int, offset bigint, leader_epoch int, window_ms bigint, file_ms bigint, "
          f"in_kafka boolean, {', '.join(f'{half} bigint' for half in HALVES)}")  # fmt: skip
Held = tuple[int, int | None, int]  # offset, leader epoch, content

RAW: list[Held] = [
    (1, 1, 70), (1, 2, 80),  # the log was cut, and holds the second record now
    (2, 1, 70),  # what the log holds under the ID now is in no file
    (3, 1, 70),
    (4, 1, 70),  # the log lacks it, and was not cut there
    (5, 1, 70), (5, 1, 71),
    (6, None, 70),  # by a line without an epoch
    (7, 1, 70), (7, 2, 70),  # the same record was appended again
]  # fmt: skip
LOG: list[Held] = [(1, 2, 80), (2, 2, 80), (3, 1, 71), (5, 1, 70), (6, 4, 70), (7, 2, 70)]


def _side(spark: SparkSession, held: Iterable[Held], *, in_kafka: bool) -> DataFrame:
    rows = [
        (SOURCE.generation, SOURCE.kafka_partition, offset, epoch, NOON, None if in_kafka else NOON, in_kafka,
         content, 0, 0, 0)
        for offset, epoch, content in held
    ]  # fmt: skip
    return spark.createDataFrame(rows, SCHEMA)


def test_records_are_compared_under_each_leader_epoch(spark: SparkSession) -> None:
    all_ids = [OffsetRange(SOURCE, 0, 10)]
    with choose_codegen(spark, 0):
        held = hold([_side(spark, LOG, in_kafka=True), _side(spark, RAW, in_kafka=False)], None, None)
        judged = judge(held, Bounds(all_ids, (), (), all_ids, ()), is_compacted=False)
        found = {(row.offset, row.leader_epoch, row.high1): (row.apart, row.lines) for row in judged.collect()}
    assert found == {
        (1, 1, 70): (None, 1),
        (1, 2, 80): (None, 1),
        (2, 1, 70): (None, 1),
        (2, 2, 80): (Difference.NOT_IN_RAW, 0),
        (3, 1, 70): (Difference.OTHER_CONTENT, 1),
        (3, 1, 71): (Difference.OTHER_CONTENT, 0),
        (4, 1, 70): (Difference.NOT_IN_LOG, 1),
        (5, 1, 70): (Difference.SEVERAL, 1),
        (5, 1, 71): (Difference.SEVERAL, 1),
        (6, 4, 70): (None, 1),
        (7, 2, 70): (None, 2),
    }
